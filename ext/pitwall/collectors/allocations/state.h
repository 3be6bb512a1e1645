/* What the files of this collector share. */
#ifndef PITWALL_ALLOCATIONS_STATE_H
#define PITWALL_ALLOCATIONS_STATE_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

enum { PW_ENDED_AT_RACTOR = 1, PW_MISSED_COLLECTIONS = 2, PW_IN_BURSTS = 4 }; /* flags of ALLO */

/* Changed in hooks, one at a time (sites.h), and by start and stop. */
typedef struct {
    bool active;    /* hooks count */
    bool bursting;  /* the hook of new objects comes and goes; ends of objects are not seen */
    bool digesting; /* strings, to find the equal ones */
    bool counting_births; /* at the end: births of what lives are counted */
    bool ends_missed;     /* Ruby did not report all ends: a word may be of an object that is gone, with its page */
    int caveats;
    uint32_t collections;   /* since start */
    size_t gc_count_before; /* Ruby's count of collections at start */
    size_t counted_before, counted; /* Ruby's own count of objects, at start; and since, once it has ended */
    uint32_t one_in, gap;   /* one object in so many is followed; objects to pass over before the next */
    uint64_t chance;
} pw_allocations_state;

extern PW_HIDDEN pw_allocations_state pw_alloc;

/* Objects that Ruby has allocated, ever. needs GVL */
size_t pw_alloc_total(void);
void pw_alloc_state_init(void);

/* Objects between two that are followed: from 0 to 2n - 2, so that no rhythm of the program is met. */
static inline uint32_t
pw_alloc_next_gap(void)
{
    uint64_t chance = pw_alloc.chance;
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    pw_alloc.chance = chance;
    return (uint32_t)((chance >> 33) % (2 * (uint64_t)pw_alloc.one_in - 1));
}

#endif

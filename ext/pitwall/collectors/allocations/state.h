/* State that the files of this collector share. */
#ifndef PITWALL_ALLOCATIONS_STATE_H
#define PITWALL_ALLOCATIONS_STATE_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

enum { PW_ENDED_AT_RACTOR = 1, PW_MISSED_COLLECTIONS = 2, PW_IN_BURSTS = 4 }; /* flags of ALLO */

/* Written by hooks, one hook at a time (see sites.h), and by start and stop. */
typedef struct {
    bool active;    /* hooks count objects */
    bool bursting;  /* the hook for new objects is installed in bursts only; ends of objects are not seen */
    bool digesting; /* strings are digested to find equal ones */
    bool counting_births; /* at the end: births of living objects are counted */
    bool ends_missed;     /* Ruby did not report all ends: a word's object may be freed and its page unmapped */
    int caveats;
    uint32_t collections;   /* since start */
    size_t gc_count_before; /* Ruby's count of collections at start */
    size_t counted_before, counted; /* Ruby's own count of objects: at start; and from start to stop, set at stop */
    uint32_t one_in, gap;   /* one object in one_in is followed; objects to skip before the next one */
    uint64_t chance;
} pw_allocations_state;

extern PW_HIDDEN pw_allocations_state pw_alloc;

/* Number of objects that Ruby has allocated since the process began. needs GVL */
size_t pw_alloc_total(void);
void pw_alloc_state_init(void);

/* Random number of objects to skip: from 0 to 2 * one_in - 2. Random, so as not to follow a pattern of the program. */
static inline uint32_t
pw_alloc_next_gap(void)
{
    uint64_t chance = pw_alloc.chance;
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    pw_alloc.chance = chance;
    return (uint32_t)((chance >> 33) % (2 * (uint64_t)pw_alloc.one_in - 1));
}

#endif

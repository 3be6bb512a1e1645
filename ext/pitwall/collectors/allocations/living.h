/* One word for each living object that is followed, found by the object's address.
 *
 * Slots of Ruby's heap begin at multiples of PW_SLOT_UNIT bytes (40, mostly), so an address divided by it is a
 * dense number and back again an address; two levels of pointers lead from its high bits to arrays of 2048 words
 * (as many as the slots of some 80 KiB). Setting and taking away is a handful of instructions, and nothing is
 * hashed or moved. All functions: needs GVL */
#ifndef PITWALL_LIVING_H
#define PITWALL_LIVING_H

#include "tools/hidden.h"
#include "vm/vm_compat.h"
#include <stdbool.h>

enum { PW_LIVING_LEAF_BITS = 11, PW_LIVING_MIDDLE_BITS = 15 };
#define PW_LIVING_TOP (((uint64_t)1 << 47) / PW_SLOT_UNIT >> (PW_LIVING_LEAF_BITS + PW_LIVING_MIDDLE_BITS) | 1)

extern PW_HIDDEN uint32_t **pw_living_top[PW_LIVING_TOP + 1];

/* The word of an object's slot, or NULL when nothing nearby is followed. */
static inline uint32_t *
pw_living_at(VALUE object)
{
    uint64_t n = object / PW_SLOT_UNIT, high = n >> (PW_LIVING_LEAF_BITS + PW_LIVING_MIDDLE_BITS);
    if (high > PW_LIVING_TOP) return NULL;
    uint32_t **middle = pw_living_top[high];
    if (!middle) return NULL;
    uint32_t *leaf = middle[n >> PW_LIVING_LEAF_BITS & ((1u << PW_LIVING_MIDDLE_BITS) - 1)];
    return leaf ? &leaf[n & ((1u << PW_LIVING_LEAF_BITS) - 1)] : NULL;
}

uint32_t *pw_living_room(VALUE object); /* makes the word's array; NULL: no memory */

/* `word` is not 0. False: no memory. */
static inline bool
pw_living_set(VALUE object, uint32_t word)
{
    uint32_t *at = pw_living_at(object);
    if (__builtin_expect(!at, 0) && !(at = pw_living_room(object))) return false;
    *at = word;
    return true;
}

/* What was set, which is then forgotten; 0: nothing. */
static inline uint32_t
pw_living_take(VALUE object)
{
    uint32_t *at = pw_living_at(object);
    if (!at) return 0;
    uint32_t word = *at;
    *at = 0;
    return word;
}

void pw_living_each(void (*visit)(VALUE object, uint32_t *word));
/* While Ruby updates references after a compaction. `gone` takes those whose memory is no longer there: not all
 * ends of objects are told (a Ractor that ends silences the collection under way: gc.c). */
void pw_living_follow_moves(void (*gone)(VALUE object, uint32_t *word));
void pw_living_free(void);
size_t pw_living_bytes(void);

#endif

/* A table with one word for each followed living object. The key is the object's address.
 *
 * Slots of Ruby's heap begin at multiples of PW_SLOT_UNIT bytes (mostly 40). An address divided by PW_SLOT_UNIT is a
 * dense index, and the index gives the address back. Two levels of pointers lead from the index's high bits to
 * arrays of 2048 words; one array covers about 80 KiB of heap. Setting or removing a word takes a few instructions.
 * Nothing is hashed or moved. All functions: needs GVL */
#ifndef PITWALL_LIVING_H
#define PITWALL_LIVING_H

#include "tools/hidden.h"
#include "vm/vm_compat.h"
#include <stdbool.h>

enum { PW_LIVING_LEAF_BITS = 11, PW_LIVING_MIDDLE_BITS = 15 };
#define PW_LIVING_TOP (((uint64_t)1 << 47) / PW_SLOT_UNIT >> (PW_LIVING_LEAF_BITS + PW_LIVING_MIDDLE_BITS) | 1)

extern PW_HIDDEN uint32_t **pw_living_top[PW_LIVING_TOP + 1];

/* The word of an object's slot. NULL: the slot's array does not exist, so no object in it is followed. */
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

/* Returns the object's word and sets it to 0. 0: the object was not followed. */
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
/* Call while Ruby updates references after a compaction. Moves the words of moved objects.
 * `gone` is called for objects whose memory has been unmapped. Ruby does not report the end of every object: when a
 * Ractor ends, Ruby stops reporting events of the collection in progress (see gc.c). */
void pw_living_follow_moves(void (*gone)(VALUE object, uint32_t *word));
void pw_living_free(void);
size_t pw_living_bytes(void);

#endif

/* How old an object grew, and what it was when it ended. */
#ifndef PITWALL_ENDS_H
#define PITWALL_ENDS_H

#include "collectors/allocations/sites.h"
#include "collectors/allocations/state.h"
#include "vm/raw_hook.h"

/* A living object's word: its site and the collections there had been at its birth. Ages are right up to PW_SETTLED
 * collections; older ones are kept at that or above. */
enum { PW_BIRTH_BITS = 14, PW_BIRTH_MASK = (1 << PW_BIRTH_BITS) - 1, PW_SETTLED = 1 << (PW_BIRTH_BITS - 1) };
_Static_assert(PW_MAX_SITES <= 1u << (32 - PW_BIRTH_BITS), "a site's id fits a word");

static inline uint32_t pw_age_of(uint32_t word) { return (pw_alloc.collections - word) & PW_BIRTH_MASK; }
static inline uint32_t
pw_word_of(const pw_site *s)
{
    return s->id << PW_BIRTH_BITS | (pw_alloc.collections & PW_BIRTH_MASK);
}

/* The hook of freed objects. */
void pw_object_freed(VALUE unused, const pw_trace_arg *arg);
/* An object that nobody reported to have ended. */
void pw_end_unseen(uint32_t word);
void pw_end_left_over(VALUE object, uint32_t *word);
/* Before the count of collections comes round to any birth. */
void pw_settle_age(VALUE object, uint32_t *word);

/* Were all collections since start seen? `telling`: one begins just now. needs GVL */
bool pw_all_collections_seen(bool telling);
/* Births of what lives (growth.h). */
void pw_count_birth(VALUE object, uint32_t *word);
void pw_end_point(void);
void pw_end_last_point(void);
/* What lives at the end: visits a page of the heap. */
int pw_retained_page(void *from, void *to, size_t stride, void *unused);

void pw_ends_init(void);

#endif

/* Ends of objects: age and size when an object is freed. */
#ifndef PITWALL_ENDS_H
#define PITWALL_ENDS_H

#include "collectors/allocations/sites.h"
#include "collectors/allocations/state.h"
#include "vm/raw_hook.h"

/* The word of a living object: its site's id, and the number of collections at its birth (low PW_BIRTH_BITS bits).
 * Ages are exact up to PW_SETTLED collections. Greater ages are kept at PW_SETTLED or above. */
enum { PW_BIRTH_BITS = 14, PW_BIRTH_MASK = (1 << PW_BIRTH_BITS) - 1, PW_SETTLED = 1 << (PW_BIRTH_BITS - 1) };
_Static_assert(PW_MAX_SITES <= 1u << (32 - PW_BIRTH_BITS), "a site's id fits a word");

static inline uint32_t pw_age_of(uint32_t word) { return (pw_alloc.collections - word) & PW_BIRTH_MASK; }
static inline uint32_t
pw_word_of(const pw_site *s)
{
    return s->id << PW_BIRTH_BITS | (pw_alloc.collections & PW_BIRTH_MASK);
}

/* The hook for freed objects. */
void pw_object_freed(VALUE unused, const pw_trace_arg *arg);
/* Counts the end of an object that Ruby freed without calling the hook. */
void pw_end_unseen(uint32_t word);
void pw_end_left_over(VALUE object, uint32_t *word);
/* Limits the age of a word before the count of collections wraps around to its birth. */
void pw_settle_age(VALUE object, uint32_t *word);

/* Did the hook see all collections since start? `telling`: the hook is being called for one that begins. needs GVL */
bool pw_all_collections_seen(bool telling);
/* Counts births of living objects, for growth.h. */
void pw_count_birth(VALUE object, uint32_t *word);
void pw_end_point(void);
void pw_end_last_point(void);
/* Counts objects that live at the end of the recording: visits one page of the heap. */
int pw_retained_page(void *from, void *to, size_t stride, void *unused);

void pw_ends_init(void);

#endif

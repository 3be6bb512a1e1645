/* Which sites a garbage collection's time is charged to.
 *
 * The time goes to the sites that allocated since the collection before: by objects, or, when malloc'ed memory
 * started the collection, by the bytes that the objects will have had, estimated by the sites' objects freed so
 * far. The time is divided when the next collection begins, because until then the collection goes on sweeping.
 *
 * Predictions need more. Marking costs time for what lives: in a minor collection for young objects, in a major one
 * for all. A collection begins because the slots of one size are used up (or malloc'ed memory is): only objects of
 * that size triggered the collection. And an object that has malloc'ed memory takes longer to sweep. */
#ifndef PITWALL_CHARGES_H
#define PITWALL_CHARGES_H

#include "collectors/allocations/sites.h"
#include "tools/hidden.h"
#include "vm/vm_compat.h"

enum { PW_YOUNG_COLLECTIONS = 3 }; /* after so many Ruby calls an object old */

typedef struct {
    bool by_malloc, by_slots; /* what started the collection */
    bool ours;                /* the collection is one that we asked for */
    bool is_major;
    bool trigger_unseen;      /* it began to make room for the next object */
    size_t trigger_slot;      /* bytes of that object's slot; 0: not known, or something else started it */
} pw_charges_state;

extern PW_HIDDEN pw_charges_state pw_charges;

/* The site has allocated since the last collection began. Slow: once a site and collection. */
void pw_charges_touch(uint32_t site);

static inline void
pw_charges_count(pw_site *s, uint64_t objects)
{
    pw_site_add_to(&s->count, objects);
    if (s->since == 0) pw_charges_touch(s->id);
    s->since += objects;
}

/* The first object after a collection began: the collection made room for it. */
static inline void
pw_charges_see(VALUE object, bool known)
{
    if (!__builtin_expect(pw_charges.trigger_unseen, 0)) return;
    pw_charges.trigger_slot = known ? pw_slot_bytes(object) : 0;
    pw_charges.trigger_unseen = false;
}

/* A collection begins: charges the one before, ... */
void pw_charges_charge(void);
/* ... counts what the one before has marked, by site, ... */
void pw_charges_count_marks(void);
/* ... and finds out whom this one is to be charged to. Whether it is a major one. */
bool pw_charges_next_collection(void);

void pw_charges_start(void);
void pw_charges_free(void);
void pw_charges_init(void);

#endif

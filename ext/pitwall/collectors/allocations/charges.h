/* Charges a garbage collection's time to allocation sites.
 *
 * The time is charged to the sites that allocated since the previous collection, in proportion to their objects.
 * If malloc'ed memory started the collection, the time is charged in proportion to bytes instead. The bytes are
 * estimated from the site's objects freed so far. A collection sweeps until the next one begins, so its time is
 * charged when the next one begins.
 *
 * Predictions need more counters. Marking takes time for living objects: for young ones in a minor collection, for
 * all in a major one. A collection begins because all slots of one size are used, or because malloc'ed memory has
 * reached its limit. Only objects of that slot size triggered the collection. An object with malloc'ed memory takes
 * longer to sweep. */
#ifndef PITWALL_CHARGES_H
#define PITWALL_CHARGES_H

#include "collectors/allocations/sites.h"
#include "tools/hidden.h"
#include "vm/vm_compat.h"

enum { PW_YOUNG_COLLECTIONS = 3 }; /* an object that has survived this many is old */

typedef struct {
    bool by_malloc, by_slots; /* what started the collection */
    bool ours;                /* Pitwall itself started the collection */
    bool is_major;
    bool trigger_unseen;      /* the object that the collection makes room for has not been seen yet */
    size_t trigger_slot;      /* slot size of that object, bytes; 0: unknown, or another cause */
} pw_charges_state;

extern PW_HIDDEN pw_charges_state pw_charges;

/* Notes that the site has allocated since the last collection began. Slow; called once a site and collection. */
void pw_charges_touch(uint32_t site);

static inline void
pw_charges_count(pw_site *s, uint64_t objects)
{
    pw_site_add_to(&s->count, objects);
    if (s->since == 0) pw_charges_touch(s->id);
    s->since += objects;
}

/* Called for each new object. The first one after a collection begins is the one that the collection made room for. */
static inline void
pw_charges_see(VALUE object, bool known)
{
    if (!__builtin_expect(pw_charges.trigger_unseen, 0)) return;
    pw_charges.trigger_slot = known ? pw_slot_bytes(object) : 0;
    pw_charges.trigger_unseen = false;
}

/* Three steps when a collection begins. First: charges the previous collection's time. */
void pw_charges_charge(void);
/* Second: counts by site the objects that the previous collection marked. */
void pw_charges_count_marks(void);
/* Third: finds the sites to charge this collection to. Returns whether this collection is a major one. */
bool pw_charges_next_collection(void);

void pw_charges_start(void);
void pw_charges_free(void);
void pw_charges_init(void);

#endif

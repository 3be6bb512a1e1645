/* Where objects were allocated: a place in the code, a class and a type; and what became of the objects, in
 * counters.
 *
 * Counters change in hooks only, one at a time: with the GVL of the only Ractor that is told (until 3.4), or with
 * the VM's lock (from 4.0 on, when all are). The drain reads counters meanwhile, so rows never move. Sites are
 * entered and named with the session's lock as well, as naming goes on beside other Ractors' hooks. Neither class
 * nor code is kept alive: of what is freed, the key is forgotten and the row stays. */
#ifndef PITWALL_SITES_H
#define PITWALL_SITES_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdbool.h>

#define PW_MAX_SITES ((1u << 18) - (1u << 10)) /* 54 MB, and ids fit 18 bits; what comes later goes to PW_SITE_OTHER */

/* Rows that stand for no place. NOBODY takes the cost of collections before which nobody had allocated. */
enum { PW_SITE_VM = 1, PW_SITE_PITWALL, PW_SITE_OTHER, PW_SITE_NOBODY, PW_SITE_FIRST };

typedef struct {
    VALUE place, klass; /* the key; place 0: forgotten, or none */
    uint32_t id, node, name; /* name: string id of the class's, 0 as long as it has none */
    uint32_t frame;         /* number of what is watched, 0: none */
    uint32_t next_of_class, next_of_frame;
    uint8_t type;
    bool told;
    uint32_t told_name;
    uint64_t written; /* fingerprint of its row, when that was last written */

    uint32_t since; /* objects since the last collection began */
    /* of those born before it, what lives, by the collections there had been at their birth; see count_marks */
    uint32_t young[4];
    uint32_t slot; /* bytes of the first object's slot, 0: unknown */
    bool listed; /* among those that may have living objects */
    _Atomic uint64_t started_ns, minor_marks, major_marks, lived, mallocs;
    _Atomic uint32_t min_age, max_age;
    _Atomic uint64_t count, old, freed, total_age, slot_bytes, memsize, retained, retained_bytes, gc_ns;
} pw_site;

/* The drain may be reading; nobody else writes. */
static inline void
pw_site_add_to(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t
pw_site_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

enum { PW_SITE_CACHE = 1 << 13 };
typedef struct { VALUE place, klass; pw_site *site; } pw_site_cached;
extern PW_HIDDEN pw_site_cached pw_site_cache[PW_SITE_CACHE];

static inline uint64_t pw_site_hash(VALUE place, VALUE klass) { return (place ^ klass << 19) * 0x9e3779b97f4a7c15u; }

pw_site *pw_site_search(VALUE place, VALUE klass);

/* NULL: not there yet. */
static inline pw_site *
pw_site_find(VALUE place, VALUE klass)
{
    pw_site_cached *cached = &pw_site_cache[pw_site_hash(place, klass) >> 51];
    if (cached->place == place && cached->klass == klass) return cached->site;
    pw_site *site = pw_site_search(place, klass);
    if (site) *cached = (pw_site_cached){place, klass, site};
    return site;
}

bool pw_sites_start(void);
/* PW_SITE_OTHER's row when there is no room. `frame`: the code that `place` lies in, 0: none. */
pw_site *pw_site_enter(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame);
pw_site *pw_site_at(uint32_t id);
pw_site *pw_site_beside(const pw_site *site, VALUE klass); /* the same place, another class */
uint32_t pw_sites_count(void); /* ids go from 1 to this */
void pw_sites_forget_object(VALUE class_or_frame); /* it is being freed. Takes the session's lock */
void pw_sites_follow_moves(void);
void pw_sites_mark(bool all); /* classes that have no name yet, or all, and then the code as well. holds session lock */
bool pw_sites_unnamed(void);
/* Names classes; with `again` also those that had no name the first time. May run Ruby, takes the session's lock.
 * needs GVL */
void pw_sites_name(bool again);
void pw_sites_write(void); /* SITE. holds session lock */
void pw_sites_free(void);

#endif

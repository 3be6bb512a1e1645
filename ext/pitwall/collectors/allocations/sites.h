/* Allocation sites: a place in the code, a class and a type. Counters say what happened to a site's objects.
 *
 * Counters change only in hooks, one hook at a time. Up to Ruby 3.4 hooks run for one Ractor only, with its GVL.
 * From 4.0 on all Ractors' hooks are called, with the VM's lock. The drain reads counters at the same time, so rows
 * never move. Adding and naming a site also takes the session lock, because naming runs beside other Ractors' hooks.
 * A site keeps neither its class nor its code alive. When one of them is freed, the key is cleared and the row
 * stays. */
#ifndef PITWALL_SITES_H
#define PITWALL_SITES_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdbool.h>

#define PW_MAX_SITES ((1u << 18) - (1u << 10)) /* 54 MB; ids fit 18 bits; later sites count as PW_SITE_OTHER */

/* Rows without a place. NOBODY gets the time of a collection when no site has allocated since the previous one. */
enum { PW_SITE_VM = 1, PW_SITE_PITWALL, PW_SITE_OTHER, PW_SITE_NOBODY, PW_SITE_FIRST };

typedef struct {
    VALUE place, klass; /* the key; place 0: cleared, or none */
    uint32_t id, node, name; /* name: string id of the class's name; 0: not named yet */
    uint32_t frame;         /* number of its watched frame, 0: none */
    uint32_t next_of_class, next_of_frame;
    uint8_t type;
    bool told;
    uint32_t told_name;
    uint64_t written; /* fingerprint of the row as last written */

    uint32_t since; /* objects since the last collection began */
    /* living objects born before that, by the count of collections at their birth; see count_marks */
    uint32_t young[4];
    uint32_t slot; /* bytes of the first object's slot, 0: unknown */
    bool listed; /* in the list of sites that may have living objects */
    _Atomic uint64_t started_ns, minor_marks, major_marks, lived, mallocs;
    _Atomic uint32_t min_age, max_age;
    _Atomic uint64_t count, old, freed, total_age, slot_bytes, memsize, retained, retained_bytes, gc_ns;
} pw_site;

/* Atomic for the drain, which reads at the same time. There is one writer at a time. */
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

/* NULL: no such site yet. */
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
/* Adds a site. Returns PW_SITE_OTHER's row if the table is full. `frame`: the code that contains `place`; 0: none. */
pw_site *pw_site_enter(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame);
pw_site *pw_site_at(uint32_t id);
pw_site *pw_site_beside(const pw_site *site, VALUE klass); /* the site of the same place and another class */
uint32_t pw_sites_count(void); /* ids go from 1 to this number */
void pw_sites_forget_object(VALUE class_or_frame); /* called when it is freed. Takes the session lock */
void pw_sites_follow_moves(void);
void pw_sites_mark(bool all); /* marks classes without a name; with `all`, all classes and code. holds session lock */
bool pw_sites_unnamed(void);
/* Names classes. With `again`, also tries classes that had no name the first time. May run Ruby. Takes the session
 * lock. needs GVL */
void pw_sites_name(bool again);
void pw_sites_write(void); /* writes the SITE chunk. holds session lock */
void pw_sites_free(void);

#endif

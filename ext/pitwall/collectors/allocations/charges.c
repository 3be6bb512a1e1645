#include "collectors/allocations/charges.h"
#include "collectors/allocations/growth.h"
#include "collectors/allocations/state.h"
#include "session/counters.h"
#include <stdlib.h>
#include <string.h>

enum { YOUNG = PW_YOUNG_COLLECTIONS };

struct share { uint32_t site; uint64_t objects; double weight; };

pw_charges_state pw_charges;

static struct {
    uint32_t *touched, touched_count, touched_room; /* sites that allocated since the last collection began */
    struct share *shares;                           /* of the current collection */
    uint32_t share_count, share_room;
    uint32_t *listed, listed_count, listed_room;    /* sites that may have living objects */
    int64_t charged_ns; /* time of collections charged so far */
    int64_t marked_ns;  /* marking time up to the last collection */
    VALUE gc_by, major_by, malloc, newobj; /* Symbols */
} state;

void
pw_charges_touch(uint32_t id)
{
    if (state.touched_count == state.touched_room) {
        uint32_t room = state.touched_room ? state.touched_room * 2 : 1024;
        uint32_t *larger = realloc(state.touched, room * sizeof(*state.touched));
        if (!larger) return;
        state.touched = larger;
        state.touched_room = room;
    }
    state.touched[state.touched_count++] = id;
}

/* Mean number of malloc'ed bytes of this site's freed objects. */
static double
malloced(const pw_site *s)
{
    uint64_t freed = pw_site_get(&s->freed);
    return freed ? (double)(pw_site_get(&s->memsize) - pw_site_get(&s->slot_bytes)) / (double)freed : 0;
}

static double
weigh(bool by_malloc)
{
    double total = 0;
    for (uint32_t i = 0; i < state.share_count; i++) {
        double objects = (double)state.shares[i].objects;
        total += state.shares[i].weight = by_malloc ? objects * malloced(pw_site_at(state.shares[i].site)) : objects;
    }
    return total;
}

static void
list(pw_site *s)
{
    if (s->listed) return;
    if (state.listed_count == state.listed_room) {
        uint32_t room = state.listed_room ? state.listed_room * 2 : 1024;
        uint32_t *larger = realloc(state.listed, room * sizeof(*state.listed));
        if (!larger) return;
        state.listed = larger;
        state.listed_room = room;
    }
    state.listed[state.listed_count++] = s->id;
    s->listed = true;
}

/* The next collection is about to begin. Objects that live now have survived the previous collection, which marked
 * them. Objects born since then are an exception: the previous collection has not marked them, and some may be freed
 * already. A major collection that marks step by step can sweep objects born while it marks. Objects born since then
 * are entered in `young`. */
void
pw_charges_count_marks(void)
{
    for (uint32_t i = 0; i < state.touched_count; i++) list(pw_site_at(state.touched[i]));
    bool is_point = pw_growth_due();
    for (uint32_t i = 0; i < state.listed_count;) {
        pw_site *s = pw_site_at(state.listed[i]);
        uint32_t *newest = &s->young[pw_alloc.collections & 3], since = s->since > *newest ? s->since - *newest : 0;
        uint64_t older = pw_site_get(&s->freed) + since, living = pw_site_get(&s->count), young = 0;
        living = living > older ? living - older : 0;
        for (uint32_t age = 1; age <= YOUNG; age++) young += s->young[(pw_alloc.collections - age) & 3];
        if (young > living) young = living; /* objects moved to another site by site_when_shown */
        *newest = since;
        s->young[(pw_alloc.collections + 1) & 3] = 0;
        pw_site_add_to(pw_charges.is_major ? &s->major_marks : &s->minor_marks, pw_charges.is_major ? living : young);
        pw_site_add_to(&s->lived, living);
        if (is_point) pw_growth_living(s->id, living);
        if (living || since) {
            i++;
            continue;
        }
        s->listed = false;
        memset(s->young, 0, sizeof s->young);
        state.listed[i] = state.listed[--state.listed_count];
    }
}

/* Weighs the objects of the slot size that was used up. If that size or a site's slot size is unknown, all objects of
 * the site count. */
static double
weigh_starters(void)
{
    double total = 0;
    for (uint32_t i = 0; i < state.share_count; i++) {
        const pw_site *s = pw_site_at(state.shares[i].site);
        total += state.shares[i].weight = pw_charges.trigger_slot && s->slot &&
                                          s->slot != pw_charges.trigger_slot ? 0 : (double)state.shares[i].objects;
    }
    return total;
}

/* Charges marking time to the sites that triggered the collection. If the program requested the collection, no site
 * triggered it. */
static void
charge_starters(int64_t ns)
{
    if (!pw_charges.by_malloc && !pw_charges.by_slots) return;
    double total = pw_charges.by_malloc ? weigh(true) : weigh_starters();
    if (total == 0) total = weigh(false);
    if (total == 0 || ns <= 0) return;
    for (uint32_t i = 0; i < state.share_count; i++) {
        pw_site_add_to(&pw_site_at(state.shares[i].site)->started_ns,
                       (uint64_t)((double)ns * (state.shares[i].weight / total)));
    }
}

static int64_t gc_ns(void) { return pw_counter(PW_GC_MARKING_NS) + pw_counter(PW_GC_SWEEPING_NS); }

/* Charges every nanosecond: the rounding error of a share is carried to the next share. */
void
pw_charges_charge(void)
{
    int64_t until = gc_ns(), ns = until - state.charged_ns, marked = pw_counter(PW_GC_MARKING_NS);
    state.charged_ns = until;
    charge_starters(marked - state.marked_ns);
    state.marked_ns = marked;
    if (ns <= 0) return;
    double total = pw_charges.by_malloc ? weigh(true) : 0, sum = 0;
    if (total == 0) total = weigh(false);
    if (total == 0) {
        pw_site_add_to(&pw_site_at(PW_SITE_NOBODY)->gc_ns, (uint64_t)ns);
        return;
    }
    uint64_t given = 0;
    for (uint32_t i = 0; i < state.share_count; i++) {
        sum += state.shares[i].weight;
        uint64_t upto = i == state.share_count - 1 ? (uint64_t)ns : (uint64_t)((double)ns * (sum / total));
        if (upto > given) pw_site_add_to(&pw_site_at(state.shares[i].site)->gc_ns, upto - given), given = upto;
    }
}

static void
divide_next(VALUE cause)
{
    /* Keep the previous shares if no site has allocated since the previous collection. Either no burst has run since,
     * or the previous collection freed too little and a major collection follows for the same reason. */
    if (!state.touched_count && !pw_charges.ours &&
        (pw_alloc.bursting || cause == state.newobj || cause == state.malloc)) {
        return;
    }
    if (state.touched_count >= state.share_room) {
        struct share *larger = realloc(state.shares, (state.touched_count + 1) * sizeof(*state.shares));
        if (larger) state.shares = larger, state.share_room = state.touched_count + 1;
    }
    pw_charges.by_malloc = cause == state.malloc;
    pw_charges.by_slots = cause == state.newobj;
    state.share_count = 0;
    for (uint32_t i = 0; i < state.touched_count; i++) {
        pw_site *s = pw_site_at(state.touched[i]);
        if (state.share_count < state.share_room) {
            state.shares[state.share_count++] = (struct share){s->id, s->since, 0};
        }
        s->since = 0;
    }
    state.touched_count = 0;
    if (pw_charges.ours && state.share_room) {
        state.share_count = 1;
        state.shares[0] = (struct share){PW_SITE_PITWALL, 1, 0};
    }
}

bool
pw_charges_next_collection(void)
{
    divide_next(rb_gc_latest_gc_info(state.gc_by));
    pw_charges.is_major = RTEST(rb_gc_latest_gc_info(state.major_by));
    pw_charges.trigger_slot = 0;
    pw_charges.trigger_unseen = pw_charges.by_slots;
    return pw_charges.is_major;
}

void
pw_charges_start(void)
{
    pw_charges = (pw_charges_state){0};
    state.charged_ns = gc_ns();
    state.marked_ns = pw_counter(PW_GC_MARKING_NS);
    /* The first call creates Ruby's own symbols, which must not happen during a collection. */
    rb_gc_latest_gc_info(state.gc_by);
}

void
pw_charges_free(void)
{
    free(state.touched);
    free(state.shares);
    free(state.listed);
    state.touched = state.listed = NULL;
    state.shares = NULL;
    state.touched_count = state.touched_room = state.share_count = state.share_room = state.listed_count = state.listed_room = 0;
}

void
pw_charges_init(void)
{
    state.gc_by = ID2SYM(rb_intern("gc_by"));
    state.major_by = ID2SYM(rb_intern("major_by"));
    state.malloc = ID2SYM(rb_intern("malloc"));
    state.newobj = ID2SYM(rb_intern("newobj"));
}

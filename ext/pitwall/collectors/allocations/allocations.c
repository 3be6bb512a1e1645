/* Records each object's place of allocation, age and size, and which places made the garbage collector run.
 *
 * Ruby reports the beginning and end of each object to hooks, one hook at a time. The hooks must not allocate. Up to
 * Ruby 3.4, Ruby reports the main Ractor's objects, with its GVL. From 4.0 on, Ruby reports all Ractors' objects,
 * with the VM's lock. One row counts the objects that the VM makes for itself, and another row counts Pitwall's
 * objects. So all rows add up to Ruby's own count. */
#include "collectors/allocations/allocations.h"
#include "collectors/allocations/bursts.h"
#include "collectors/allocations/charges.h"
#include "collectors/allocations/duplicates.h"
#include "collectors/allocations/ends.h"
#include "collectors/allocations/growth.h"
#include "collectors/allocations/holders.h"
#include "collectors/allocations/living.h"
#include "collectors/allocations/places.h"
#include "output/output.h"
#include "session/session.h"
#include "tools/settings.h"
#include "tools/wipe_stack.h"
#include "vm/other_gc.h"
#include "vm/vm_layout.h"
#include <stdio.h>
#include <string.h>

static struct {
    bool own_layout, whole_stacks;
    uint64_t untracked; /* objects not followed because memory ran out */
    uint64_t seen;      /* objects that sampling could have chosen */
    VALUE follower;     /* Ruby calls its type's functions at a compaction */
    struct { const VALUE *ec; VALUE object; bool seen; } proof; /* what the raw hook received */
} state;

/* ---- new objects ---- */

static pw_site *
site_of(const pw_trace_arg *arg, VALUE klass, uint8_t type)
{
    VALUE typed = (VALUE)type << 56;
    pw_frame_seen frame = {0};
    if (!state.own_layout) {
        VALUE place = (pw_place_by_ruby(&frame) & ~((VALUE)0xff << 56)) | typed;
        pw_site *site = pw_site_find(place, klass);
        return site ? site : pw_place_new_site(place, klass, type, frame.frame ? pw_place_node(&frame) : 0,
                                               frame.frame);
    }
    const VALUE *ec = arg->ec;
    if (state.whole_stacks) {
        uint32_t node = pw_place_of_stack(ec);
        VALUE place = ((VALUE)node + 1) | typed;
        pw_site *site = pw_site_find(place, klass);
        return site ? site : pw_place_new_site(place, klass, type, node, 0);
    }
    const VALUE *cfp = pw_walk_innermost(ec, arg->cfp);
    VALUE place = (cfp ? cfp[PW_CFP_PC] : 1) | typed;
    pw_site *site = pw_site_find(place, klass);
    if (__builtin_expect(site != NULL, 1)) return site;
    uint32_t node = cfp && pw_walk_look(ec, cfp, &frame) ? pw_place_node(&frame) : 0;
    return pw_place_new_site(place, klass, type, node, frame.frame);
}

/* Does sampling skip this object? In bursts, the VM's objects are sampled like all others. */
static inline bool
passed_over(void)
{
    if (pw_alloc.one_in <= 1) return false;
    if (pw_alloc.gap-- > 0) return true;
    pw_alloc.gap = pw_alloc_next_gap();
    return false;
}

static inline bool
of_the_vm(uint32_t type)
{
    return type == T_IMEMO || type == T_NONE || (int)type == PW_T_NODE;
}

/* Does Pitwall's own work allocate this object? Other Ractors run during Pitwall's work, and their objects are not
 * Pitwall's. */
static inline bool is_own_work(void) { return __builtin_expect(pw_own_work > 0, 0) && pw_in_main_ractor(); }

static void
on_newobj(VALUE unused, const pw_trace_arg *arg)
{
    if (!pw_alloc.active) return;
    if (pw_alloc.bursting && (is_own_work() || !pw_in_burst() || passed_over())) return;
    VALUE object = arg->data;
    uint32_t type = (uint32_t)(RBASIC(object)->flags & RUBY_T_MASK);
    pw_charges_see(object, !pw_alloc.bursting);
    if (of_the_vm(type)) {
        pw_charges_count(pw_site_at(PW_SITE_VM), 1);
        return;
    }
    if (is_own_work()) {
        pw_charges_count(pw_site_at(PW_SITE_PITWALL), 1);
        return;
    }
    state.seen++;
    if (!pw_alloc.bursting && passed_over()) return;
    pw_site *s = site_of(arg, RBASIC(object)->klass, (uint8_t)type);
    pw_charges_count(s, 1);
    if (__builtin_expect(!s->slot, 0)) s->slot = (uint32_t)pw_slot_bytes(object);
    if (pw_alloc.bursting) {
        size_t slot = pw_slot_bytes(object);
        pw_site_add_to(&s->slot_bytes, slot);
        pw_site_add_to(&s->memsize, slot);
        pw_burst_lengthen();
        return;
    }
    uint32_t *word = pw_living_at(object);
    if (__builtin_expect(!word, 0) && !(word = pw_living_room(object))) {
        state.untracked++;
        return;
    }
    if (__builtin_expect(*word != 0, 0)) pw_end_unseen(*word);
    *word = pw_word_of(s);
}

/* ---- collections ---- */

static void
on_gc_start(VALUE unused, const pw_trace_arg *arg)
{
    if (!pw_alloc.active) return;
    pw_charges_charge();
    if (!pw_alloc.bursting) pw_charges_count_marks();
    if (pw_growth_due()) pw_end_point();
    bool is_major = pw_charges_next_collection();
    /* Limit ages before the count of collections wraps around to a birth. */
    if (++pw_alloc.collections % PW_SETTLED == 0) pw_living_each(pw_settle_age);
    if (!pw_charges.ours) pw_growth_collection(pw_alloc.collections, is_major);
    pw_places_name();
    pw_wipe_stack(); /* marking begins next */
}

/* ---- start and stop ---- */

static void
follow_moves(void *unused)
{
    if (!pw_alloc.active) return;
    pw_living_follow_moves(pw_end_left_over);
    pw_sites_follow_moves();
}

static const rb_data_type_t follower_type = {"Pitwall/allocations", {NULL, NULL, NULL, follow_moves}, .flags = 0};

/* Does a raw event agree with the layout that Pitwall reads, and do slots begin at multiples of PW_SLOT_UNIT? */
static void
on_proof(VALUE unused, const pw_trace_arg *arg)
{
    VALUE object = rb_tracearg_object((rb_trace_arg_t *)arg);
    if (arg->data != object || object % PW_SLOT_UNIT) return;
    state.proof.object = object;
    state.proof.ec = arg->ec;
    state.proof.seen = true;
}

static const char *
prove(void)
{
    VALUE object = 0;
    state.proof.seen = false;
    /* While a Ractor ends, Ruby 3.3 and 3.4 do not call the hooks for a moment, so try again. */
    for (int tries = 0; tries < 5 && !state.proof.seen; tries++) {
        pw_add_raw_hook(on_proof, RUBY_INTERNAL_EVENT_NEWOBJ);
        object = rb_obj_alloc(rb_cObject);
        pw_remove_raw_hook(on_proof);
    }
    if (!state.proof.seen || state.proof.object != object) {
        return "this Ruby tells of new objects, or places them, in a way that Pitwall does not know";
    }
    state.own_layout = pw_walk_own() && state.proof.ec == pw_walk_context_of(rb_thread_current());
    return NULL;
}

static const char *
no_stacks(void)
{
    static char text[200];
    const char *why = pw_walk_refusal();
    snprintf(text, sizeof text, "cannot take stacks of allocations: %s",
             why ? why : "this Ruby tells of objects in another way than expected");
    return text;
}

static const char *
start(VALUE settings)
{
    if (pw_other_gc()) {
        return "objects are counted with Ruby's own garbage collector only, not with what RUBY_GC_LIBRARY names";
    }
    const char *refusal = prove();
    if (refusal) return refusal;
    VALUE n = pw_setting(settings, "one_in");
    long every = NIL_P(n) ? 1 : strtol(StringValueCStr(n), NULL, 10);
    pw_alloc.bursting = pw_setting_is_on(settings, "bursts", false);
    bool asked = pw_setting_is_on(settings, "stacks", false);
    if (asked && !state.own_layout && !pw_alloc.bursting) return no_stacks(); /* bursts need only places */
    state.whole_stacks = state.own_layout && (asked || pw_alloc.bursting);
    pw_alloc.one_in = every > 1 && every < 1 << 30 ? (uint32_t)every : 1;
    pw_alloc.chance = (uint64_t)pw_now_ns() | 1;
    pw_alloc.gap = pw_alloc.one_in > 1 ? pw_alloc_next_gap() : 0;
    if (!pw_sites_start()) {
        pw_sites_free();
        return "no memory for the table of sites";
    }
    pw_alloc.digesting = !pw_alloc.bursting && pw_setting_is_on(settings, "strings", false);
    if (pw_alloc.digesting && !pw_duplicates_start()) {
        pw_sites_free();
        return "no memory or no random key for the digests of strings";
    }
    if (!pw_alloc.bursting && pw_setting_is_on(settings, "growth", false)) pw_growth_start();
    pw_holders_start(pw_growth_on() && pw_setting_is_on(settings, "holders", false));
    pw_alloc.ends_missed = false;
    pw_alloc.collections = 0;
    state.untracked = state.seen = pw_alloc.counted = 0;
    pw_alloc.gc_count_before = rb_gc_count();
    pw_alloc.caveats = pw_alloc.bursting ? PW_IN_BURSTS : 0;
    pw_places_start();
    pw_charges_start();
    pw_site_at(PW_SITE_VM)->slot = PW_SLOT_UNIT;
    pw_own_work++;
    pw_add_raw_hook(on_gc_start, RUBY_INTERNAL_EVENT_GC_START);
    if (!pw_alloc.bursting) {
        pw_add_raw_hook(pw_object_freed, RUBY_INTERNAL_EVENT_FREEOBJ);
        pw_add_raw_hook(on_newobj, RUBY_INTERNAL_EVENT_NEWOBJ);
    }
    pw_alloc.counted_before = pw_alloc_total();
    pw_alloc.active = true;
    if (pw_alloc.bursting && !pw_bursts_start(on_newobj)) {
        pw_alloc.active = false;
        pw_remove_raw_hook(on_gc_start);
        pw_sites_free();
        refusal = "cannot start the thread that keeps bursts";
    }
    pw_own_work--;
    return refusal;
}

static void
own_begin(void)
{
    if (pw_alloc.active && pw_alloc.bursting) pw_bursts_own_begin();
}

static void
own_end(void)
{
    if (pw_alloc.active && pw_alloc.bursting) pw_bursts_own_end();
}

static void
end_collecting(void)
{
    pw_alloc.counted = pw_alloc_total() - pw_alloc.counted_before;
    pw_alloc.active = false;
    pw_remove_raw_hook(on_newobj);
    pw_remove_raw_hook(pw_object_freed);
    pw_remove_raw_hook(on_gc_start);
}

/* Runs one more collection first, so that unreachable objects do not count as retained. The program's sites are not
 * charged for this collection. */
static void
stop(void)
{
    if (!pw_alloc.active) return;
    bool in_child = !pw_session_generation();
    pw_bursts_stop(in_child);
    pw_own_begin();
    if (pw_alloc.bursting) {
        if (!in_child) pw_sites_name(true);
        end_collecting();
        if (!in_child) pw_charges_charge();
    }
    else if (!in_child) {
        pw_charges.ours = true;
        rb_gc();
        if (!pw_all_collections_seen(false)) pw_alloc.caveats |= PW_MISSED_COLLECTIONS;
        pw_sites_name(!(pw_alloc.caveats & PW_MISSED_COLLECTIONS)); /* unseen collections may have freed classes */
        end_collecting();
        bool is_point = pw_growth_begin_last_point();
        if (is_point && pw_holders_wanted() && pw_growth_begin_births(pw_alloc.collections)) {
            pw_living_each(pw_count_birth);
            pw_growth_choose(pw_holders_choose);
        }
        pw_alloc.counting_births = is_point && pw_growth_begin_births(pw_alloc.collections);
        if (!pw_each_page(pw_retained_page)) pw_alloc.caveats |= PW_MISSED_COLLECTIONS;
        pw_living_each(pw_end_left_over);
        if (is_point) pw_end_last_point();
        if (is_point && pw_holders_wanted()) pw_holders_find();
        pw_charges_charge();
    }
    else end_collecting();
    pw_own_end();
}

/* Stops counting. Ruby 3.1 dereferences a null pointer if it reports an object in a Ractor's thread before the
 * thread's first frame. */
static void
before_ractor(void)
{
    if (!pw_alloc.active) return;
    pw_alloc.caveats |= PW_ENDED_AT_RACTOR;
    stop();
}

static void
write_chunks(bool last)
{
    enum { COLUMNS = 12, WORK = 6, VALUES = COLUMNS + WORK - 1 };
    pw_sites_write();
    pw_buffer columns[COLUMNS] = {{0}}, work[WORK] = {{0}};
    uint32_t n = 0, sites = pw_sites_count();
    for (uint32_t id = 1; id <= sites; id++) {
        pw_site *s = pw_site_at(id);
        uint64_t values[VALUES] = {id, pw_site_get(&s->count), pw_site_get(&s->old), pw_site_get(&s->freed),
                                   pw_site_get(&s->total_age),
                                    s->min_age, s->max_age, pw_site_get(&s->slot_bytes), pw_site_get(&s->memsize),
                                   pw_site_get(&s->retained), pw_site_get(&s->gc_ns), pw_site_get(&s->retained_bytes),
                                   pw_site_get(&s->started_ns), pw_site_get(&s->minor_marks),
                                       pw_site_get(&s->major_marks), pw_site_get(&s->lived), pw_site_get(&s->mallocs)};
        uint64_t print = pw_fingerprint(values, VALUES);
        if (print == s->written && !last) continue;
        s->written = print;
        pw_buffer_row(columns, values, COLUMNS);
        for (int i = 0; i < WORK; i++) pw_buffer_int(&work[i], values[i ? COLUMNS - 1 + i : 0]);
        n++;
    }
    if (last && pw_alloc.digesting) pw_duplicates_write();
    if (last) pw_holders_write();
    if (pw_growth_on()) pw_growth_write();
    if (n || last) {
        uint64_t head[] = {pw_alloc.counted, state.seen, state.untracked, (uint64_t)pw_alloc.caveats, n};
        pw_writer_table(&pw_out.writer, "ALLO", 5, head, COLUMNS, columns);
    }
    if (n && !pw_alloc.bursting) pw_writer_table(&pw_out.writer, "GCWK", 1, (uint64_t[]){n}, WORK, work);
    pw_buffers_free(columns, COLUMNS);
    pw_buffers_free(work, WORK);
}

/* All of this state changes only with the GVL, so a forked child has a complete copy. */
static void
forget(bool frees)
{
    pw_sites_free();
    pw_living_free();
    pw_duplicates_free();
    pw_growth_forget(frees);
    pw_holders_forget(frees);
    pw_charges_free();
    pw_places_free();
}

/* In bursts, Ruby does not report the ends of objects, so a freed class would go unnoticed. Marks all classes then. */
static void mark(void) { pw_sites_mark(pw_alloc.bursting); }

static void
init(VALUE native)
{
    pw_alloc_state_init();
    pw_charges_init();
    pw_places_init();
    pw_ends_init();
    state.follower = TypedData_Wrap_Struct(rb_cObject, &follower_type, (void *)1);
    rb_gc_register_mark_object(state.follower);
}

const pw_module pw_allocations = {
    .name = "allocations", .init = init, .start = start, .stop = stop, .forget = forget, .write = write_chunks,
            .mark = mark,
    .before_ractor = before_ractor, .own_begin = own_begin, .own_end = own_end};

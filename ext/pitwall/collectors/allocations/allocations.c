/* Every object: where it was allocated, how old it grew, how large it was; and which places made the garbage collector run.
 *
 * Ruby tells of each object's beginning and end in hooks, one at a time, which may not allocate: until 3.4 of the main Ractor's
 * objects, with its GVL, from 4.0 on of all Ractors', with the VM's lock. What the VM makes for itself is counted in one row, and
 * what Pitwall makes in another, so that all rows add up to what Ruby counts. */
#include "collectors/allocations/allocations.h"
#include "collectors/allocations/duplicates.h"
#include "collectors/allocations/growth.h"
#include "collectors/allocations/holders.h"
#include "collectors/allocations/living.h"
#include "collectors/allocations/sites.h"
#include "output/naming.h"
#include "output/output.h"
#include "sampling/gc.h"
#include "session/session.h"
#include "tools/quiet_thread.h"
#include "tools/settings.h"
#include "vm/other_gc.h"
#include "vm/stack_walk.h"
#include "vm/vm_layout.h"
#include <ruby/ractor.h>
#include <stdio.h>
#include <string.h>

/* A living object's word: its site and the collections there had been at its birth. Ages are right up to SETTLED collections;
 * older ones are kept at that or above. */
enum { BIRTH_BITS = 14, BIRTH_MASK = (1 << BIRTH_BITS) - 1, SETTLED = 1 << (BIRTH_BITS - 1), OLD_AGE = 3 };
_Static_assert(PW_MAX_SITES <= 1u << (32 - BIRTH_BITS), "a site's id fits a word");

/* rb_trace_arg_t, in words; proven at each start. */
enum { ARG_EC = 1, ARG_CFP = 2, ARG_DATA = 7 };

static bool active, own_layout, whole_stacks;
enum { ENDED_AT_RACTOR = 1, MISSED_COLLECTIONS = 2, IN_BURSTS = 4 };
static int caveats; /* flags of ALLO */
static bool digesting; /* strings, to tell which are equal */
static bool bursting; /* the hook of new objects comes and goes; ends of objects are not seen */
static _Atomic bool burst_running;
static bool burst_hooked;
static int64_t burst_pause_ns;
static uint64_t own_before; /* objects when work of our own began */
static size_t gc_count_before;
static uint32_t collections;
static uint64_t untracked;           /* objects that no memory was left to follow */
static size_t counted_before, counted; /* Ruby's own count, at start; and since, once it has ended */
static uint64_t seen;                /* objects that had a chance to be followed */
static uint32_t one_in, gap;
static uint64_t chance;
static VALUE sym_total, sym_gc_by, sym_major_by, sym_malloc, sym_newobj;

/* ---- names ---- */

static pw_job name_job;
static _Atomic bool names_asked; /* the job is triggered */

static void
run_name_job(void *unused)
{
    atomic_store(&names_asked, false);
    if (!active || !pw_session_generation()) return;
    pw_own_begin();
    pw_sites_name(false);
    pw_own_end();
}

/* At once, as a class is kept alive until it has a name. */
static void
want_names(void)
{
    if (pw_may_trigger() && !atomic_exchange(&names_asked, true)) pw_job_trigger(&name_job);
}

/* In a hook: here the GVL is ours. */
static void
ask_for_names(void)
{
    pw_naming_trigger_if_wanted();
    if (pw_sites_unnamed()) want_names();
}

/* ---- where ---- */

enum { WALKS = 8, WALK_ROOM = 4096 };
static struct { pw_walk walk; uint32_t *nodes; void *memory; } walks[WALKS]; /* by execution context */

static uint32_t
intern_locked(uint32_t parent, const pw_frame_seen *frame)
{
    return pw_intern_node(&pw_out.tables, parent, frame->frame, frame->owner, frame->line > 0 ? (uint32_t)frame->line : 0);
}

static uint32_t
intern(uint32_t parent, const pw_frame_seen *frame)
{
    pthread_mutex_lock(&pw_current.lock);
    uint32_t node = intern_locked(parent, frame);
    pthread_mutex_unlock(&pw_current.lock);
    return node;
}

/* The whole stack's node. Neighbouring objects share most of their stacks: only frames that differ are looked up. */
static uint32_t
stack_node(const VALUE *ec)
{
    size_t at = ((VALUE)ec >> 6) % WALKS;
    pw_walk *w = &walks[at].walk;
    uint32_t *nodes = walks[at].nodes;
    if (!walks[at].memory) {
        walks[at].memory = calloc(1, pw_walk_bytes(WALK_ROOM) + WALK_ROOM * sizeof(uint32_t));
        if (!walks[at].memory) return 0;
        *w = (pw_walk){0};
        pw_walk_place(w, walks[at].memory, WALK_ROOM);
        w->every_owner = w->settled = true;
        nodes = walks[at].nodes = (uint32_t *)((char *)walks[at].memory + pw_walk_bytes(WALK_ROOM));
    }
    uint32_t same = pw_walk_context(w, ec), parent = same ? nodes[same - 1] : 0;
    if (same < w->depth) {
        pthread_mutex_lock(&pw_current.lock);
        if (w->cut && !same) parent = intern_locked(0, &(pw_frame_seen){.frame = PW_FRAME_TRUNCATED});
        for (uint32_t i = same; i < w->depth; i++) {
            if (w->seen[i].frame) parent = intern_locked(parent, &w->seen[i]);
            nodes[i] = parent;
        }
        pthread_mutex_unlock(&pw_current.lock);
    }
    return w->depth ? nodes[w->depth - 1] : 0;
}

/* The first frame of Ruby code from the top, without knowing layouts: C functions have no line. */
static VALUE
innermost_by_ruby(pw_frame_seen *found)
{
    enum { LOOK = 16 };
    VALUE frames[LOOK];
    int lines[LOOK], n = rb_profile_frames(0, LOOK, frames, lines);
    for (int i = 0; i < n; i++) {
        if (lines[i] <= 0) continue;
        *found = (pw_frame_seen){.frame = frames[i], .line = lines[i]};
        return frames[i] ^ (VALUE)(unsigned)lines[i] << 40;
    }
    *found = (pw_frame_seen){0};
    return 1;
}

static pw_site *
new_site(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame)
{
    pw_site *site = pw_site_enter(place, klass, type, node, frame);
    ask_for_names();
    return site;
}

static pw_site *
site_of(const VALUE *arg, VALUE klass, uint8_t type)
{
    VALUE typed = (VALUE)type << 56;
    pw_frame_seen frame = {0};
    if (!own_layout) {
        VALUE place = (innermost_by_ruby(&frame) & ~((VALUE)0xff << 56)) | typed;
        pw_site *site = pw_site_find(place, klass);
        return site ? site : new_site(place, klass, type, frame.frame ? intern(0, &frame) : 0, frame.frame);
    }
    const VALUE *ec = (const VALUE *)arg[ARG_EC];
    if (whole_stacks) {
        uint32_t node = stack_node(ec);
        VALUE place = ((VALUE)node + 1) | typed;
        pw_site *site = pw_site_find(place, klass);
        return site ? site : new_site(place, klass, type, node, 0);
    }
    const VALUE *cfp = pw_walk_innermost(ec, (const VALUE *)arg[ARG_CFP]);
    VALUE place = (cfp ? cfp[PW_CFP_PC] : 1) | typed;
    pw_site *site = pw_site_find(place, klass);
    if (__builtin_expect(site != NULL, 1)) return site;
    uint32_t node = cfp && pw_walk_look(ec, cfp, &frame) ? intern(0, &frame) : 0;
    return new_site(place, klass, type, node, frame.frame);
}

/* ---- charged collections ---- */

/* A collection's time goes to the sites that allocated since the one before: by objects, or, when malloc'ed memory was what
 * started it, by the bytes that they will have had, estimated by their objects freed so far. It is divided when the next one
 * begins, for until then it goes on sweeping. */
static uint32_t *touched, touched_count, touched_room; /* sites that allocated since the last one began */
static struct share { uint32_t site; uint64_t objects; double weight; } *shares;
static uint32_t share_count, share_room;
static bool share_by_malloc, share_by_slots;
static int64_t charged_ns;
static bool ours; /* the collection is one that we asked for */

/* For predictions there is more to know of a collection. Marking costs time for what lives: in a minor one for young objects, in a major one
 * for all. It begins because the slots of one size are used up (or malloc'ed memory is): only objects of that size brought
 * it about. And an object that has memory malloc'ed takes longer to sweep. */
static uint32_t *listed, listed_count, listed_room; /* sites that may have living objects */
static int64_t marked_ns; /* marking until the last collection */
static bool is_major; /* the collection */
static bool trigger_unseen; /* it began to make room for the next object */
static size_t trigger_slot; /* bytes of that one's slot, 0: not known, or something else began it */
enum { YOUNG = 3 }; /* collections after which Ruby calls an object old */

static void
touch(uint32_t id)
{
    if (touched_count == touched_room) {
        uint32_t room = touched_room ? touched_room * 2 : 1024;
        uint32_t *larger = realloc(touched, room * sizeof(*touched));
        if (!larger) return;
        touched = larger;
        touched_room = room;
    }
    touched[touched_count++] = id;
}

/* Bytes that an object of this site has had malloc'ed, on average. */
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
    for (uint32_t i = 0; i < share_count; i++) {
        double objects = (double)shares[i].objects;
        total += shares[i].weight = by_malloc ? objects * malloced(pw_site_at(shares[i].site)) : objects;
    }
    return total;
}

static void
list(pw_site *s)
{
    if (s->listed) return;
    if (listed_count == listed_room) {
        uint32_t room = listed_room ? listed_room * 2 : 1024;
        uint32_t *larger = realloc(listed, room * sizeof(*listed));
        if (!larger) return;
        listed = larger;
        listed_room = room;
    }
    listed[listed_count++] = s->id;
    s->listed = true;
}

/* The next collection is about to begin: who lives now has survived this one, and was marked by it. But for those born since: of them, some may be
 * freed already, as what is born while a major one marks step by step can be swept by it. They are counted in their place among the young. */
static void
count_marks(void)
{
    for (uint32_t i = 0; i < touched_count; i++) list(pw_site_at(touched[i]));
    bool is_point = pw_growth_due();
    for (uint32_t i = 0; i < listed_count;) {
        pw_site *s = pw_site_at(listed[i]);
        uint32_t *newest = &s->young[collections & 3], since = s->since > *newest ? s->since - *newest : 0;
        uint64_t older = pw_site_get(&s->freed) + since, living = pw_site_get(&s->count), young = 0;
        living = living > older ? living - older : 0;
        for (uint32_t age = 1; age <= YOUNG; age++) young += s->young[(collections - age) & 3];
        if (young > living) young = living; /* objects shown to the program late have moved to another site */
        *newest = since;
        s->young[(collections + 1) & 3] = 0;
        pw_site_add_to(is_major ? &s->major_marks : &s->minor_marks, is_major ? living : young);
        pw_site_add_to(&s->lived, living);
        if (is_point) pw_growth_living(s->id, living);
        if (living || since) {
            i++;
            continue;
        }
        s->listed = false;
        memset(s->young, 0, sizeof s->young);
        listed[i] = listed[--listed_count];
    }
}

/* Which of the sizes of slots was used up is not known of all sites: then all objects count. */
static double
weigh_starters(void)
{
    double total = 0;
    for (uint32_t i = 0; i < share_count; i++) {
        const pw_site *s = pw_site_at(shares[i].site);
        total += shares[i].weight = trigger_slot && s->slot && s->slot != trigger_slot ? 0 : (double)shares[i].objects;
    }
    return total;
}

/* Marking is laid at the door of those who brought the collection about; where the program asked for one, nobody did. */
static void
charge_starters(int64_t ns)
{
    if (!share_by_malloc && !share_by_slots) return;
    double total = share_by_malloc ? weigh(true) : weigh_starters();
    if (total == 0) total = weigh(false);
    if (total == 0 || ns <= 0) return;
    for (uint32_t i = 0; i < share_count; i++) {
        pw_site_add_to(&pw_site_at(shares[i].site)->started_ns, (uint64_t)((double)ns * (shares[i].weight / total)));
    }
}

static int64_t gc_ns(void) { return pw_counter(PW_GC_MARKING_NS) + pw_counter(PW_GC_SWEEPING_NS); }

/* To the nanosecond: rounding is carried from share to share. */
static void
charge(void)
{
    int64_t until = gc_ns(), ns = until - charged_ns, marked = pw_counter(PW_GC_MARKING_NS);
    charged_ns = until;
    charge_starters(marked - marked_ns);
    marked_ns = marked;
    if (ns <= 0) return;
    double total = share_by_malloc ? weigh(true) : 0, sum = 0;
    if (total == 0) total = weigh(false);
    if (total == 0) {
        pw_site_add_to(&pw_site_at(PW_SITE_NOBODY)->gc_ns, (uint64_t)ns);
        return;
    }
    uint64_t given = 0;
    for (uint32_t i = 0; i < share_count; i++) {
        sum += shares[i].weight;
        uint64_t upto = i == share_count - 1 ? (uint64_t)ns : (uint64_t)((double)ns * (sum / total));
        if (upto > given) pw_site_add_to(&pw_site_at(shares[i].site)->gc_ns, upto - given), given = upto;
    }
}

static void
divide_next(VALUE cause)
{
    /* Nobody was looked at since; or it freed too little, and a major one follows for the same reason: as before. */
    if (!touched_count && !ours && (bursting || cause == sym_newobj || cause == sym_malloc)) return;
    if (touched_count >= share_room) {
        struct share *larger = realloc(shares, (touched_count + 1) * sizeof(*shares));
        if (larger) shares = larger, share_room = touched_count + 1;
    }
    share_by_malloc = cause == sym_malloc;
    share_by_slots = cause == sym_newobj;
    share_count = 0;
    for (uint32_t i = 0; i < touched_count; i++) {
        pw_site *s = pw_site_at(touched[i]);
        if (share_count < share_room) shares[share_count++] = (struct share){s->id, s->since, 0};
        s->since = 0;
    }
    touched_count = 0;
    if (ours && share_room) {
        share_count = 1;
        shares[0] = (struct share){PW_SITE_PITWALL, 1, 0};
    }
}

/* ---- ages ---- */

static uint32_t
age_of(uint32_t word)
{
    return (collections - word) & BIRTH_MASK;
}

static void
settle(VALUE object, uint32_t *word)
{
    if (age_of(*word) > SETTLED) *word = (*word & ~(uint32_t)BIRTH_MASK) | ((collections - SETTLED) & BIRTH_MASK);
}

static size_t bytes_beyond_slot(VALUE object, size_t slot, bool swept);
/* Until 3.4 other Ractors' collections are not told, nor what they free. `telling`: one begins just now. */
static bool all_collections_seen(bool telling) { return rb_gc_count() - gc_count_before == collections + (telling ? 1 : 0); }

/* With a Ractor Ruby forgets who listens (gc.c): a word may be of an object that is gone, with its page. */
static bool ends_missed;

/* The garbage of the last collection is swept, and the next has not begun to mark: what has a word lives, unless ends of objects are not
 * told. The program may be in the middle of changing an object: only of the simplest types more than the slot is asked for. */
static void
tell_birth(VALUE object, uint32_t *word)
{
    uint32_t age = age_of(*word), site = *word >> BIRTH_BITS;
    if (age == 0 || !pw_growth_born(site, age)) return;
    pw_site *s = pw_site_at(site);
    bool simple = s->type == T_STRING || s->type == T_ARRAY || s->type == T_HASH || s->type == T_OBJECT;
    size_t slot = s->slot;
    if (simple && !ends_missed && all_collections_seen(true) && (RBASIC(object)->flags & RUBY_T_MASK) == s->type) {
        slot = pw_slot_bytes(object);
        pw_growth_bytes(site, slot + bytes_beyond_slot(object, slot, true));
    }
    else pw_growth_bytes(site, slot);
}

/* Of the collection before the one that begins. */
static void
end_point(void)
{
    pw_growth_end_point();
    if (!pw_growth_births_due()) return;
    if (pw_growth_begin_births(collections)) pw_living_each(tell_birth);
    pw_growth_end_births();
}

static void
on_gc_start(VALUE unused, const VALUE *arg)
{
    if (!active) return;
    charge();
    if (!bursting) count_marks();
    if (pw_growth_due()) end_point();
    divide_next(rb_gc_latest_gc_info(sym_gc_by));
    is_major = RTEST(rb_gc_latest_gc_info(sym_major_by));
    trigger_slot = 0;
    trigger_unseen = share_by_slots;
    /* Before the counter comes round to any birth. */
    if (++collections % SETTLED == 0) pw_living_each(settle);
    if (!ours) pw_growth_collection(collections, is_major);
    ask_for_names();
}

/* ---- begin and end of an object ---- */

static inline void
count_many(pw_site *s, uint64_t objects)
{
    pw_site_add_to(&s->count, objects);
    if (s->since == 0) touch(s->id);
    s->since += objects;
}

static inline void count(pw_site *s) { count_many(s, 1); }

/* Objects between two that are followed: from 0 to 2n - 2, so that no rhythm of the program is met. */
static uint32_t
next_gap(void)
{
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return (uint32_t)((chance >> 33) % (2 * (uint64_t)one_in - 1));
}

/* Freed by another Ractor's collection: hooks are each Ractor's own. */
/* Is this one of those that are not followed? In bursts the VM's objects are sampled like all others. */
static inline bool
passed_over(void)
{
    if (one_in <= 1) return false;
    if (gap-- > 0) return true;
    gap = next_gap();
    return false;
}

static void
end_unseen(uint32_t word)
{
    pw_site *s = pw_site_at(word >> BIRTH_BITS);
    uint32_t age = age_of(word);
    if (!(pw_site_get(&s->freed) + pw_site_get(&s->retained)) || age < s->min_age) atomic_store_explicit(&s->min_age, age, memory_order_relaxed);
    if (age > s->max_age) atomic_store_explicit(&s->max_age, age, memory_order_relaxed);
    pw_site_add_to(&s->freed, 1);
    pw_site_add_to(&s->total_age, age);
    pw_site_add_to(&s->slot_bytes, PW_SLOT_UNIT);
    pw_site_add_to(&s->memsize, PW_SLOT_UNIT);
}

static void
end_left_over(VALUE object, uint32_t *word)
{
    end_unseen(*word);
    *word = 0;
}

static inline bool
of_the_vm(uint32_t type)
{
    return type == T_IMEMO || type == T_NONE || (int)type == PW_T_NODE;
}

/* Is it Pitwall's own work that allocates? Other Ractors go on meanwhile. */
static inline bool is_own_work(void) { return __builtin_expect(pw_own_work > 0, 0) && pw_in_main_ractor(); }

/* A burst is a stretch of the program's time: objects before burst_from and after burst_until are not in it, and what looking
 * takes puts off its end: else it would see the fewer objects of a place the faster that allocates. 0: there is none. */
static int64_t burst_from, burst_until, burst_looked;
static void end_burst(void);

static inline bool
in_burst(void)
{
    if (burst_until == 0) return false;
    int64_t now = burst_looked = pw_now_ns();
    if (now < burst_from) return false;
    if (now <= burst_until) return true;
    end_burst();
    return false;
}

static void
on_newobj(VALUE unused, const VALUE *arg)
{
    if (!active) return;
    if (bursting && (is_own_work() || !in_burst() || passed_over())) return;
    VALUE object = arg[ARG_DATA];
    uint32_t type = (uint32_t)(RBASIC(object)->flags & RUBY_T_MASK);
    if (__builtin_expect(trigger_unseen, 0)) {
        trigger_slot = bursting ? 0 : pw_slot_bytes(object);
        trigger_unseen = false;
    }
    if (of_the_vm(type)) {
        count(pw_site_at(PW_SITE_VM));
        return;
    }
    if (is_own_work()) {
        count(pw_site_at(PW_SITE_PITWALL));
        return;
    }
    seen++;
    if (!bursting && passed_over()) return;
    pw_site *s = site_of(arg, RBASIC(object)->klass, (uint8_t)type);
    count(s);
    if (__builtin_expect(!s->slot, 0)) s->slot = (uint32_t)pw_slot_bytes(object);
    if (bursting) {
        size_t slot = pw_slot_bytes(object);
        pw_site_add_to(&s->slot_bytes, slot);
        pw_site_add_to(&s->memsize, slot);
        burst_until += pw_now_ns() - burst_looked;
        return;
    }
    uint32_t *word = pw_living_at(object);
    if (__builtin_expect(!word, 0) && !(word = pw_living_room(object))) {
        untracked++;
        return;
    }
    if (__builtin_expect(*word != 0, 0)) end_unseen(*word);
    *word = s->id << BIRTH_BITS | (collections & BIRTH_MASK);
}

static const rb_data_type_t *set_type;

static inline bool is_set(VALUE object) { return set_type && RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) == set_type; }

/* While garbage is swept, what an object refers to may be gone: only what Ruby's own types hold themselves is asked for. */
static size_t
bytes_beyond_slot(VALUE object, size_t slot, bool swept)
{
    VALUE flags = RBASIC(object)->flags;
    bool more = pw_other_ivars_may_have_more(flags);
    switch (flags & RUBY_T_MASK) {
      case T_FLOAT: case T_RATIONAL: case T_COMPLEX: break;
      case T_STRING: more |= pw_string_may_have_more(flags); break;
      case T_ARRAY: more |= pw_array_may_have_more(flags); break;
      case T_OBJECT: more |= pw_plain_object_may_have_more(flags); break;
      case T_DATA: more = !swept || is_set(object); break;
      default: more = true;
    }
    if (!more) return 0;
    size_t all = pw_object_bytes(object);
    return all > slot ? all - slot : 0;
}

/* Many an array or string is made out of the program's sight and shown to it later. A class that is no constant of Ruby's
 * own may be gone when its objects are swept. */
static pw_site *
site_when_shown(pw_site *s, VALUE klass, bool swept)
{
    if (!s->place || !klass || (swept && klass != rb_cString && klass != rb_cArray && klass != rb_cHash && klass != rb_cObject)) return s;
    pw_site *shown = pw_site_beside(s, klass);
    atomic_store_explicit(&s->count, pw_site_get(&s->count) - 1, memory_order_relaxed);
    pw_site_add_to(&shown->count, 1);
    return shown;
}

static bool telling_births; /* at the end */

/* age: without our own collection at the end. */
static void
add_object(pw_site *s, VALUE object, bool swept, uint32_t age)
{
    if (!s->klass) s = site_when_shown(s, RBASIC(object)->klass, swept);
    size_t slot = pw_slot_bytes(object), beyond = bytes_beyond_slot(object, slot, swept);
    uint64_t ended = pw_site_get(&s->freed) + pw_site_get(&s->retained);
    pw_site_add_to(swept ? &s->freed : &s->retained, 1);
    /* An object that a collection frees has survived those before it. */
    if (age >= OLD_AGE + (swept ? 1 : 0)) pw_site_add_to(&s->old, 1);
    pw_site_add_to(&s->total_age, age);
    if (!ended || age < s->min_age) atomic_store_explicit(&s->min_age, age, memory_order_relaxed);
    if (age > s->max_age) atomic_store_explicit(&s->max_age, age, memory_order_relaxed);
    pw_site_add_to(&s->slot_bytes, slot);
    pw_site_add_to(&s->memsize, slot + beyond);
    if (!swept) {
        pw_site_add_to(&s->retained_bytes, slot + beyond);
        if (telling_births && pw_growth_born(s->id, age + 1)) pw_growth_bytes(s->id, slot + beyond);
        if (telling_births && pw_holders_wanted()) pw_holders_see(s->id, object);
    }
    if (swept && (beyond || s->type == T_DATA)) pw_site_add_to(&s->mallocs, 1); /* what swept data have is not known */
    if (digesting && s->type == T_STRING && s->klass) pw_duplicates_add(object, s->id, slot + beyond, swept);
}

static void
on_freeobj(VALUE unused, const VALUE *arg)
{
    if (!active) return;
    VALUE object = arg[ARG_DATA];
    uint32_t type = (uint32_t)(RBASIC(object)->flags & RUBY_T_MASK);
    if (type == T_IMEMO || type == T_CLASS || type == T_MODULE) pw_sites_forget_object(object);
    else if (type == T_DATA && RBASIC(object)->klass == rb_cRactor) {
        ends_missed = true;
        pw_gc_ask_again();
    }
    uint32_t word = pw_living_take(object);
    if (!word) return;
    pw_site *s = pw_site_at(word >> BIRTH_BITS);
    uint32_t age = age_of(word);
    uint32_t *young = &s->young[word & 3];
    if (age == 0) ++*young;
    else if (age <= YOUNG && *young) --*young;
    add_object(s, object, true, age);
}

/* ---- what lives at the end ---- */

static int
visit_page(void *from, void *to, size_t stride, void *unused)
{
    for (VALUE object = (VALUE)from; object < (VALUE)to; object += stride) {
        uint32_t *at = pw_living_at(object);
        if (!at || !*at) continue;
        uint32_t type = (uint32_t)(RBASIC(object)->flags & RUBY_T_MASK);
        if (type == T_NONE || type == PW_T_MOVED || type == PW_T_ZOMBIE) continue;
        uint32_t age = age_of(*at); /* without our own collection at the end */
        add_object(pw_site_at(*at >> BIRTH_BITS), object, false, age ? age - 1 : 0);
        *at = 0;
    }
    return 0;
}

static void
end_last_point(void)
{
    for (uint32_t id = 1; id <= pw_sites_count(); id++) pw_growth_living(id, pw_site_get(&pw_site_at(id)->retained));
    pw_growth_end_point();
    pw_growth_end_births();
    telling_births = false;
}

/* ---- start and stop ---- */

static VALUE follower; /* is told of compactions */

static void
follow_moves(void *unused)
{
    if (!active) return;
    pw_living_follow_moves(end_left_over);
    pw_sites_follow_moves();
}

static const rb_data_type_t follower_type = {"Pitwall/allocations", {NULL, NULL, NULL, follow_moves}, .flags = 0};

/* Is what a raw hook is handed as we read it, and are slots where we look for them? */
static const VALUE *proof_ec;
static bool proof_seen;
static VALUE proof_object;

static void
on_proof(VALUE unused, const VALUE *arg)
{
    VALUE object = rb_tracearg_object((rb_trace_arg_t *)arg);
    if (arg[ARG_DATA] != object || object % PW_SLOT_UNIT) return;
    proof_object = object;
    proof_ec = (const VALUE *)arg[ARG_EC];
    proof_seen = true;
}

typedef void (*raw_hook)(VALUE, const VALUE *);

static void
add_hook(raw_hook hook, rb_event_flag_t events)
{
    rb_add_event_hook2((rb_event_hook_func_t)(void (*)(void))hook, events, Qnil, RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
}

static int remove_hook(raw_hook hook) { return rb_remove_event_hook((rb_event_hook_func_t)(void (*)(void))hook); }

static const char *
prove(void)
{
    VALUE object = 0;
    proof_seen = false;
    /* While a Ractor ends, Ruby 3.3 and 3.4 forget for a moment who listens. */
    for (int tries = 0; tries < 5 && !proof_seen; tries++) {
        add_hook(on_proof, RUBY_INTERNAL_EVENT_NEWOBJ);
        object = rb_obj_alloc(rb_cObject);
        remove_hook(on_proof);
    }
    if (!proof_seen || proof_object != object) return "this Ruby tells of new objects, or places them, in a way that Pitwall does not know";
    own_layout = pw_walk_own() && proof_ec == pw_walk_context_of(rb_thread_current());
    return NULL;
}

static size_t total_allocated(void) { return rb_gc_stat(sym_total); }

/* ---- bursts ---- */

/* A hook costs most of what counting costs. In bursts it is there for a small part of the time: a helper thread keeps the
 * time, and a job adds and removes it at Ruby's safepoints. A burst begins a fixed time after the helper asked for it, which is
 * chosen by chance, and is over by the clock, also where the job comes late (a collection, a core lent to others) or too late: one
 * that began at the next safepoint would count what comes after those too often. So what a C function allocates later than the delay
 * after its beginning is seen too seldom. What is seen of a program's phases depends on the time in bursts, not on how many there are.
 * Our own work is jobs as well, and would be met too often: its objects are counted, not sampled. */
enum { BURST_NS = 100000, BURST_DELAY_NS = 100000, MOST_OF_TIME = 50 };

static pw_job burst_job;
static pthread_t burst_thread;
static _Atomic int64_t burst_asked; /* when; 0: not, or hooked already */

static void
run_burst_job(void *unused)
{
    if (!active || !bursting || !pw_in_main_ractor()) return; /* until 3.4 hooks are each Ractor's own; jobs are run in any */
    int64_t asked = atomic_exchange(&burst_asked, 0), now = pw_now_ns();
    if (asked && now < asked + BURST_DELAY_NS + BURST_NS && (!burst_hooked || now > burst_until)) {
        for (int i = 0; i < WALKS; i++) walks[i].walk.depth = 0; /* frames may have been freed since */
        burst_from = asked + BURST_DELAY_NS;
        burst_until = burst_from + BURST_NS;
        if (!burst_hooked) add_hook(on_newobj, RUBY_INTERNAL_EVENT_NEWOBJ);
        burst_hooked = true;
        pw_count(PW_BURSTS, 1);
    }
    else if (burst_hooked && burst_until == 0) {
        burst_hooked = remove_hook(on_newobj) == 0;
    }
    counted = total_allocated() - counted_before;
}

/* Not here and now: hooks are being called. */
static void
end_burst(void)
{
    burst_until = 0;
    pw_job_trigger(&burst_job);
}

static void
own_begin(void)
{
    if (active && bursting) own_before = total_allocated();
}

static void
own_end(void)
{
    if (active && bursting) count_many(pw_site_at(PW_SITE_PITWALL), total_allocated() - own_before);
}

static void
pause_until(int64_t at)
{
    struct timespec until = {at / 1000000000, at % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Pauses vary by half, so that no rhythm of the program is met. */
static void *
keep_bursts(void *unused)
{
    uint64_t random = (uint64_t)pw_now_ns() | 1;
    while (atomic_load(&burst_running)) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        pause_until(pw_now_ns() + burst_pause_ns / 2 + (int64_t)(random % (uint64_t)burst_pause_ns));
        if (!atomic_load(&burst_running)) break;
        atomic_store(&burst_asked, pw_now_ns());
        pw_job_trigger(&burst_job);
    }
    return NULL;
}

static bool
start_bursts(void)
{
    uint32_t of_time = one_in < MOST_OF_TIME ? one_in : MOST_OF_TIME;
    burst_pause_ns = (int64_t)BURST_NS * (of_time > 1 ? of_time - 1 : 1);
    one_in = one_in > of_time ? (one_in + of_time / 2) / of_time : 1;
    gap = one_in > 1 ? next_gap() : 0;
    burst_hooked = false;
    burst_from = burst_until = 0;
    atomic_store(&burst_asked, 0);
    if (!burst_job.func && !pw_job_init(&burst_job, run_burst_job)) return false;
    pw_job_trigger(&burst_job); /* from here first: see safepoint_ticker.c */
    atomic_store(&burst_running, true);
    if (pw_start_quiet_thread(&burst_thread, keep_bursts) == 0) return true;
    atomic_store(&burst_running, false);
    return false;
}

static void
stop_bursts(bool in_child)
{
    if (atomic_exchange(&burst_running, false) && !in_child) pthread_join(burst_thread, NULL);
}

static const char *
no_stacks(void)
{
    static char text[200];
    const char *why = pw_walk_refusal();
    snprintf(text, sizeof text, "cannot take stacks of allocations: %s", why ? why : "this Ruby tells of objects in another way than expected");
    return text;
}

static const char *
start(VALUE settings)
{
    if (pw_other_gc()) return "objects are counted with Ruby's own garbage collector only, not with what RUBY_GC_LIBRARY names";
    const char *refusal = prove();
    if (refusal) return refusal;
    VALUE n = pw_setting(settings, "one_in");
    long every = NIL_P(n) ? 1 : strtol(StringValueCStr(n), NULL, 10);
    bursting = pw_setting_is_on(settings, "bursts", false);
    bool asked = pw_setting_is_on(settings, "stacks", false);
    if (asked && !own_layout && !bursting) return no_stacks(); /* beside samples, places will do */
    whole_stacks = own_layout && (asked || bursting);
    one_in = every > 1 && every < 1 << 30 ? (uint32_t)every : 1;
    chance = (uint64_t)pw_now_ns() | 1;
    gap = one_in > 1 ? next_gap() : 0;
    if (!pw_sites_start()) {
        pw_sites_free();
        return "no memory for the table of sites";
    }
    digesting = !bursting && pw_setting_is_on(settings, "strings", false);
    if (digesting && !pw_duplicates_start()) {
        pw_sites_free();
        return "no memory or no random key for the digests of strings";
    }
    if (!bursting && pw_setting_is_on(settings, "growth", false)) pw_growth_start();
    pw_holders_start(pw_growth_on() && pw_setting_is_on(settings, "holders", false));
    ends_missed = false;
    collections = 0;
    untracked = seen = counted = 0;
    ours = false;
    gc_count_before = rb_gc_count();
    caveats = bursting ? IN_BURSTS : 0;
    atomic_store(&names_asked, false);
    charged_ns = gc_ns();
    marked_ns = pw_counter(PW_GC_MARKING_NS);
    trigger_unseen = is_major = share_by_malloc = share_by_slots = false;
    trigger_slot = 0;
    pw_site_at(PW_SITE_VM)->slot = PW_SLOT_UNIT;
    rb_gc_latest_gc_info(sym_gc_by);
    pw_own_work++;
    add_hook(on_gc_start, RUBY_INTERNAL_EVENT_GC_START);
    if (!bursting) {
        add_hook(on_freeobj, RUBY_INTERNAL_EVENT_FREEOBJ);
        add_hook(on_newobj, RUBY_INTERNAL_EVENT_NEWOBJ);
    }
    counted_before = total_allocated();
    active = true;
    if (bursting && !start_bursts()) {
        active = false;
        remove_hook(on_gc_start);
        pw_sites_free();
        refusal = "cannot start the thread that keeps bursts";
    }
    pw_own_work--;
    return refusal;
}

static void
end_collecting(void)
{
    counted = total_allocated() - counted_before;
    active = false;
    remove_hook(on_newobj);
    remove_hook(on_freeobj);
    remove_hook(on_gc_start);
}

/* What is unreachable by now is not retained: one more collection, which nobody is charged for. */
static void
stop(void)
{
    if (!active) return;
    bool in_child = !pw_session_generation();
    stop_bursts(in_child);
    pw_own_begin();
    if (bursting) {
        if (!in_child) pw_sites_name(true);
        end_collecting();
        if (!in_child) charge();
    }
    else if (!in_child) {
        ours = true;
        rb_gc();
        if (!all_collections_seen(false)) caveats |= MISSED_COLLECTIONS;
        pw_sites_name(!(caveats & MISSED_COLLECTIONS)); /* a class may be gone without our knowing */
        end_collecting();
        bool is_point = pw_growth_begin_last_point();
        if (is_point && pw_holders_wanted() && pw_growth_begin_births(collections)) {
            pw_living_each(tell_birth);
            pw_growth_choose(pw_holders_choose);
        }
        telling_births = is_point && pw_growth_begin_births(collections);
        if (!pw_each_page(visit_page)) caveats |= MISSED_COLLECTIONS;
        pw_living_each(end_left_over);
        if (is_point) end_last_point();
        if (is_point && pw_holders_wanted()) pw_holders_find();
        charge();
    }
    else end_collecting();
    pw_own_end();
}

/* Ruby 3.1 follows a null pointer when it tells of objects in a Ractor's thread before its first frame. */
static void
before_ractor(void)
{
    if (!active) return;
    caveats |= ENDED_AT_RACTOR;
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
        uint64_t values[VALUES] = {id, pw_site_get(&s->count), pw_site_get(&s->old), pw_site_get(&s->freed), pw_site_get(&s->total_age),
                                    s->min_age, s->max_age, pw_site_get(&s->slot_bytes), pw_site_get(&s->memsize),
                                   pw_site_get(&s->retained), pw_site_get(&s->gc_ns), pw_site_get(&s->retained_bytes),
                                   pw_site_get(&s->started_ns), pw_site_get(&s->minor_marks), pw_site_get(&s->major_marks), pw_site_get(&s->lived), pw_site_get(&s->mallocs)};
        uint64_t print = pw_fingerprint(values, VALUES);
        if (print == s->written && !last) continue;
        s->written = print;
        pw_buffer_row(columns, values, COLUMNS);
        for (int i = 0; i < WORK; i++) pw_buffer_int(&work[i], values[i ? COLUMNS - 1 + i : 0]);
        n++;
    }
    if (last && digesting) pw_duplicates_write();
    if (last) pw_holders_write();
    if (pw_growth_on()) pw_growth_write();
    if (n || last) {
        uint64_t head[] = {counted, seen, untracked, (uint64_t)caveats, n};
        pw_writer_table(&pw_out.writer, "ALLO", 5, head, COLUMNS, columns);
    }
    if (n && !bursting) pw_writer_table(&pw_out.writer, "GCWK", 1, (uint64_t[]){n}, WORK, work);
    pw_buffers_free(columns, COLUMNS);
    pw_buffers_free(work, WORK);
}

/* All of it changes with the GVL only, so a forked child's copy is whole. */
static void
forget(bool frees)
{
    pw_sites_free();
    pw_living_free();
    pw_duplicates_free();
    pw_growth_forget(frees);
    pw_holders_forget(frees);
    free(touched);
    free(shares);
    free(listed);
    touched = listed = NULL;
    shares = NULL;
    touched_count = touched_room = share_count = share_room = listed_count = listed_room = 0;
    for (int i = 0; i < WALKS; i++) {
        free(walks[i].memory);
        walks[i].memory = NULL;
    }
}

/* Without the ends of objects, nobody would tell that a class is gone. */
static void mark(void) { pw_sites_mark(bursting); }

static void
init(VALUE native)
{
    sym_total = ID2SYM(rb_intern("total_allocated_objects"));
    sym_gc_by = ID2SYM(rb_intern("gc_by"));
    sym_major_by = ID2SYM(rb_intern("major_by"));
    sym_malloc = ID2SYM(rb_intern("malloc"));
    sym_newobj = ID2SYM(rb_intern("newobj"));
    if (!pw_job_init(&name_job, run_name_job)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    set_type = pw_set_type();
    follower = TypedData_Wrap_Struct(rb_cObject, &follower_type, (void *)1);
    rb_gc_register_mark_object(follower);
}

const pw_module pw_allocations = {
    .name = "allocations", .init = init, .start = start, .stop = stop, .forget = forget, .write = write_chunks, .mark = mark,
    .before_ractor = before_ractor, .own_begin = own_begin, .own_end = own_end};

#include "sampling/capture.h"
#include "output/output.h"
#include "sampling/native_stack.h"
#include <ruby/debug.h>
#include <string.h>

/* Resolved at load: a handler must not run the dynamic linker's lazy lookup. */
static int (*const frames_by_ruby)(int, int, VALUE *, int *) = rb_profile_frames;

/* The number of common frames next to the root of two stacks (leaf first). */
static int
common_with_previous(const pw_thread *t, const VALUE *frames, const int *lines, int n)
{
    int limit = n < t->stack.previous_count ? n : t->stack.previous_count;
    const VALUE *f = frames + n, *pf = t->stack.previous_frames + t->stack.previous_count;
    const int *l = lines + n, *pl = t->stack.previous_lines + t->stack.previous_count;
    int k = 0;
    while (k < limit && f[-k - 1] == pf[-k - 1] && l[-k - 1] == pl[-k - 1]) k++;
    return k;
}

static uint32_t
sample_bytes(uint32_t fresh, uint32_t owned)
{
    return (uint32_t)(sizeof(pw_sample) + (fresh + owned) * sizeof(VALUE) + fresh * sizeof(int));
}

static uint32_t label_of(pw_thread *t) { return atomic_load_explicit(&t->own.label, memory_order_relaxed); }

/* Room for a sample of `fresh` frames and `owned` owners. NULL: the ring is full. Then only this look is lost: the time
 * goes to the next row, and the drain keeps the previous stack. */
static pw_sample *
reserve(pw_thread *t, uint8_t kind, uint32_t common, uint32_t fresh, uint32_t owned, uint8_t state, uint16_t captures,
        int64_t wall, int64_t cpu)
{
    pw_sample *s = (pw_sample *)pw_ring_reserve(&pw_out.ring, sample_bytes(fresh, owned));
    if (!s) {
        if (kind == PW_REC_SAMPLE) pw_count(PW_DROPPED, 1);
        return NULL;
    }
    s->header.kind = kind;
    s->header.state = state;
    s->header.captures = captures;
    s->thread = t;
    s->wall = wall;
    s->cpu = cpu;
    s->common = common;
    s->fresh = fresh;
    s->owned = owned;
    s->label = t->sample.label = label_of(t);
    return s;
}

static void
commit(pw_thread *t, pw_sample *s)
{
    int64_t wall = s->wall, cpu = s->cpu;
    bool sample = s->header.kind == PW_REC_SAMPLE;
    t->sample.unchanged = s->fresh == 0 && s->common == t->sample.sent;
    t->sample.sent = s->common + s->fresh;
    t->sample.serial++;
    pw_ring_commit(&s->header, sample_bytes(s->fresh, s->owned));
    if (!sample) return;
    t->sample.any = true;
    atomic_store_explicit(&t->sample.last_wall, wall, memory_order_relaxed);
    atomic_store_explicit(&t->sample.last_cpu, cpu, memory_order_relaxed);
}

/* Writes the stack in t->stack.frames. On success it becomes the thread's previous stack. */
static bool
put(pw_thread *t, uint8_t kind, int n, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    VALUE *frames = t->stack.frames;
    int *lines = t->stack.lines;
    int common = common_with_previous(t, frames, lines, n);
    int fresh = n - common;
    if (kind == PW_REC_STACK && fresh == 0 && (uint32_t)common == t->sample.sent) return true;
    pw_sample *s = reserve(t, kind, (uint32_t)common, (uint32_t)fresh, 0, state, captures, wall, cpu);
    if (!s) return false;
    memcpy(s->frames, frames, (size_t)fresh * sizeof(VALUE));
    memcpy(s->frames + fresh, lines, (size_t)fresh * sizeof(int));
    commit(t, s);
    t->stack.frames = t->stack.previous_frames, t->stack.previous_frames = frames;
    t->stack.lines = t->stack.previous_lines, t->stack.previous_lines = lines;
    t->stack.previous_count = n;
    t->stack.walk.agreed = 0;
    return true;
}

/* Writes the stack that an own walk left in t->stack.walk. The first `same` control frames are unchanged since the walk
 * before.
 *
 * Example: the walk before found main, a, b; this walk found main, a, c, d. Then `same` is 2. `agreed` is 2, or less if
 * the drain has less of the walk before. `common` is the number of those frames that are listed, and `fresh` the number
 * of new listed frames: 2 (c and d), and 1 more for a `leaf`. */
static bool
put_walk(pw_thread *t, uint8_t kind, uint32_t same, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall,
         int64_t cpu)
{
    pw_walk *w = &t->stack.walk;
    uint32_t agreed = same < w->agreed ? same : w->agreed, total = pw_walk_listed(w, w->depth);
    uint32_t fresh = total - pw_walk_listed(w, agreed) + (leaf != 0), common = pw_walk_listed(w, agreed);
    bool owners = false, mark_cut = false;
    if (w->cut) { /* Pitwall's frame PW_FRAME_TRUNCATED next to the root */
        if (agreed) common++;
        else mark_cut = true, fresh++;
    }
    if (kind == PW_REC_STACK && fresh == 0 && common == t->sample.sent) return true;
    for (uint32_t i = agreed; i < w->depth && !owners; i++) owners = w->seen[i].owner != 0;
    w->agreed = agreed;
    pw_sample *s = reserve(t, kind, common, fresh, owners ? fresh : 0, state, captures, wall, cpu);
    if (!s) return false;
    VALUE *frame = s->frames, *owner = frame + fresh;
    int *line = (int *)(owner + s->owned);
    if (owners) memset(owner, 0, fresh * sizeof(VALUE));
    if (leaf) *frame++ = leaf, *line++ = 0, owner++;
    for (uint32_t i = w->depth; i-- > agreed;) {
        const pw_frame_seen *seen = &w->seen[i];
        if (!seen->frame) continue;
        *frame++ = seen->frame;
        *line++ = seen->line;
        if (owners) *owner++ = seen->owner;
    }
    if (mark_cut) *frame = PW_FRAME_TRUNCATED, *line = 0;
    commit(t, s);
    w->agreed = w->depth;
    t->stack.previous_count = 0; /* if rb_profile_frames takes the next stack, nothing is in common */
    return true;
}

/* Writes the stack in t->native->stack. */
static bool
put_joined(pw_thread *t, uint8_t kind, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    pw_native_room *room = t->native;
    pw_joined_stack *stack = &room->stack;
    bool sent_last = room->serial == t->sample.serial;
    if (!sent_last) stack->agreed = 0;
    uint32_t common = stack->agreed, fresh = stack->count - common;
    if (kind == PW_REC_STACK && fresh == 0 && sent_last && common == t->sample.sent) return true;
    bool owners = false;
    for (uint32_t i = common; i < stack->count && !owners; i++) owners = stack->owners[i] != 0;
    pw_sample *s = reserve(t, kind, common, fresh, owners ? fresh : 0, state, captures, wall, cpu);
    if (!s) return false;
    VALUE *frame = s->frames, *owner = frame + fresh;
    int *line = (int *)(owner + s->owned);
    for (uint32_t i = stack->count; i-- > common;) {
        *frame++ = stack->frames[i];
        if (owners) *owner++ = stack->owners[i];
        *line++ = stack->lines[i];
    }
    commit(t, s);
    stack->agreed = stack->count;
    room->serial = t->sample.serial;
    t->stack.previous_count = 0; /* if the next stack is taken in another way, nothing is in common */
    t->stack.walk.agreed = 0;
    return true;
}

/* Records the stack that the walk found, with native frames. A stack is taken when the thread gives the GVL up, or when it
 * has it again. What runs in between is one frame. */
static bool
capture_native(pw_thread *t, uint8_t kind, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    bool any = pw_walk_listed(&t->stack.walk, t->stack.walk.depth) != 0;
    if (kind == PW_REC_SAMPLE) t->sample.empty = any ? 0 : t->sample.empty + 1;
    if (!any && state == PW_UNKNOWN) return true;
    pw_native_stack_take(t, state == PW_BLOCKED ? PW_FRAME_WITHOUT_GVL : 0);
    return put_joined(t, kind, state, captures, wall, cpu);
}

/* Records the stack that the walk found. */
static bool
capture_walk(pw_thread *t, uint32_t same, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    uint32_t n = pw_walk_listed(&t->stack.walk, t->stack.walk.depth) + (leaf != 0);
    t->sample.empty = n ? 0 : t->sample.empty + 1;
    if (n == 0 && state == PW_UNKNOWN) {
        t->stack.walk.agreed = 0;
        return true;
    }
    if (t->stack.walk.cut) pw_count(PW_TRUNCATED, 1);
    return put_walk(t, PW_REC_SAMPLE, same, leaf, state, captures, wall, cpu);
}

/* May the stack be walked here? An M:N thread may have just moved to another native thread. */
static bool
walks(const pw_thread *t)
{
    return t->stack.walk.thread && !atomic_load_explicit(&t->carrier.migrates, memory_order_relaxed);
}

/* Takes the stack with rb_profile_frames, after the first `n` frames of t->stack.frames. Returns the new count. */
static int
take_by_ruby(pw_thread *t, int n)
{
    int depth = pw_has_stack() ? frames_by_ruby(0, PW_MAX_DEPTH, t->stack.frames + n, t->stack.lines + n) : 0;
    n += depth;
    if (depth < PW_MAX_DEPTH) return n;
    t->stack.frames[n] = PW_FRAME_TRUNCATED, t->stack.lines[n] = 0;
    pw_count(PW_TRUNCATED, 1);
    return n + 1;
}

/* Lets one native thread at a time take the stack. A signal may reach a native thread that an M:N thread has just left
 * and that thread runs elsewhere. A helper may read the stack while the thread itself takes it at a system call. */
static bool
begin_look(pw_thread *t)
{
    return !atomic_exchange_explicit(&t->sample.being_taken, true, memory_order_acquire);
}

static bool
end_look(pw_thread *t, bool taken)
{
    atomic_store_explicit(&t->sample.being_taken, false, memory_order_release);
    return taken;
}

static bool
capture_stack(pw_thread *t)
{
    if (!walks(t)) return put(t, PW_REC_STACK, take_by_ruby(t, 0), PW_UNKNOWN, 0, 0, 0);
    uint32_t same = pw_walk_stack(&t->stack.walk);
    if (t->native) return capture_native(t, PW_REC_STACK, PW_RUNNING, 0, 0, 0);
    return put_walk(t, PW_REC_STACK, same, 0, PW_UNKNOWN, 0, 0, 0);
}

bool pw_capture_stack(pw_thread *t) { return begin_look(t) && end_look(t, capture_stack(t)); }

static bool
capture(pw_thread *t, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    if (walks(t)) {
        uint32_t same = pw_walk_stack(&t->stack.walk);
        if (t->native && !leaf) return capture_native(t, PW_REC_SAMPLE, state, captures, wall, cpu);
        return capture_walk(t, same, leaf, state, captures, wall, cpu);
    }
    if (leaf) t->stack.frames[0] = leaf, t->stack.lines[0] = 0;
    int n = take_by_ruby(t, leaf ? 1 : 0);
    t->sample.empty = n ? 0 : t->sample.empty + 1;
    if (n == 0 && state == PW_UNKNOWN) return true; /* the thread is starting or has ended */
    return put(t, PW_REC_SAMPLE, n, state, captures, wall, cpu);
}

/* After a successful look every word is a living object that has not moved. The word was in a frame of a living stack
 * when the look began. No collection ran then, and none can begin its work before the look is over (pw_reader_pass in
 * gc.c and naming.c). After the look the word is in the ring, which is marked.
 *
 * After a torn look a word may be anything, as in a handler. So a word is dereferenced only through the kernel (peek.c)
 * or if it is a known frame, and naming checks the word again. */
static bool
capture_outside(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu)
{
    enum { TRIES = 4 };
    pw_walk *w = &t->stack.walk;
    if (!w->thread) return false;
    for (int i = 0; i < TRIES; i++) {
        uint32_t same;
        pw_outcome outcome = pw_walk_outside(w, &same);
        if (outcome == PW_SEEN) return capture_walk(t, same, 0, state, 1, wall, cpu);
        if (same < w->agreed) w->agreed = same;
        if (outcome == PW_NOTHING) {
            t->sample.empty++;
            return false;
        }
        pw_count(PW_TORN_READS, 1);
    }
    return false;
}

bool
pw_capture_outside(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu)
{
    return begin_look(t) && end_look(t, capture_outside(t, state, wall, cpu));
}

bool
pw_capture(pw_thread *t, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    return begin_look(t) && end_look(t, capture(t, leaf, state, captures, wall, cpu));
}

void
pw_capture_collection_begins(pw_thread *t)
{
    if (!begin_look(t)) return;
    if (walks(t) && (pw_walk_stack(&t->stack.walk), pw_walk_listed(&t->stack.walk, t->stack.walk.depth))) {
        pw_native_collection_begins(t);
        /* The drain gets the frames before the marking, so they are marked. Stacks within the step have no others. */
        if (!put_joined(t, PW_REC_STACK, PW_RUNNING, 0, 0, 0)) pw_native_collection_ends(t);
    }
    end_look(t, true);
}

bool
pw_capture_in_collection(pw_thread *t, VALUE leaf, uint8_t state, int64_t wall, int64_t cpu)
{
    return begin_look(t) && end_look(t, pw_native_collection_take(t, leaf) &&
                                            put_joined(t, PW_REC_SAMPLE, state, 1, wall, cpu));
}

void pw_capture_collection_ends(pw_thread *t) { pw_native_collection_ends(t); }

static int64_t
read_cpu(pw_thread *t, int64_t wall)
{
    int64_t cpu = pw_thread_cpu(t), burnt = cpu - t->sample.read_cpu, passed = wall - t->sample.read_wall;
    bool all = burnt * 100 >= passed * 99;
    t->sample.trust = !all ? 0 : t->sample.trust < 8 ? t->sample.trust + 1 : 8;
    t->sample.read_cpu = cpu;
    t->sample.read_wall = wall;
    t->sample.unread = 0;
    t->sample.cpu_stale = false;
    return cpu;
}

int64_t
pw_cpu_to_charge(pw_thread *t, bool waiting, int64_t wall)
{
    int64_t charged = atomic_load_explicit(&t->sample.last_cpu, memory_order_relaxed);
    if (!waiting) {
        bool running = atomic_load_explicit(&t->own.state, memory_order_relaxed) == PW_RUNNING;
        /* Ticks were missed, so the thread may have been off the CPU. */
        bool late = wall - atomic_load_explicit(&t->sample.last_wall,
                                                memory_order_relaxed) > 2 * pw_current.interval_ns;
        bool read = !running || late || t->sample.cpu_stale || t->sample.cpu_due || t->sample.trust < 8 ||
                    t->sample.unread >= 3;
        int64_t cpu = read ? read_cpu(t, wall) : t->sample.read_cpu + (wall - t->sample.read_wall);
        if (!read) t->sample.unread++;
        t->sample.cpu_due = 0;
        return cpu > charged ? cpu : charged;
    }
    int64_t now = read_cpu(t, wall);
    int64_t ran = t->own.suspended_at - atomic_load_explicit(&t->sample.last_wall, memory_order_relaxed);
    int64_t burnt = now - charged;
    if (burnt > 0 && ran > 0) t->sample.cpu_due = burnt < ran ? burnt : ran;
    return now - t->sample.cpu_due > charged ? now - t->sample.cpu_due : charged;
}

bool
pw_capture_nothing(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu)
{
    return put(t, PW_REC_SAMPLE, 0, state, 0, wall, cpu);
}

/* behind: the number of bytes that follow the record */
static pw_sample *
reserve_bare(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu, uint32_t behind)
{
    pw_sample *s = (pw_sample *)pw_ring_reserve(&pw_out.ring, (uint32_t)sizeof(pw_sample) + behind);
    if (!s) return NULL;
    s->header.kind = kind;
    s->header.state = state;
    s->header.captures = 0;
    s->thread = t;
    s->wall = wall;
    s->cpu = cpu;
    s->common = (uint32_t)t->stack.previous_count;
    s->fresh = s->owned = 0;
    s->label = label_of(t);
    return s;
}

bool
pw_charge(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu)
{
    return pw_charge_under(t, kind, state, wall, cpu, label_of(t));
}

bool
pw_charge_under(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu, uint32_t label)
{
    pw_sample *s = reserve_bare(t, kind, state, wall, cpu, 0);
    if (!s) return false;
    s->label = label;
    pw_ring_commit(&s->header, sizeof(pw_sample));
    atomic_store_explicit(&t->sample.last_wall, wall, memory_order_relaxed);
    atomic_store_explicit(&t->sample.last_cpu, cpu, memory_order_relaxed);
    return true;
}

static bool
put_with_queries(pw_thread *t, uint8_t kind, int64_t from, int64_t until, const pw_query_part *parts, uint32_t count,
                 const pw_work_increase *increase)
{
    uint32_t of_parts = count * (uint32_t)sizeof(*parts);
    uint32_t behind = of_parts + (increase ? (uint32_t)sizeof(*increase) : 0);
    pw_sample *s = reserve_bare(t, kind, 0, until, from, behind);
    if (!s) return false;
    s->header.captures = (uint16_t)count;
    if (of_parts) memcpy(s->frames, parts, of_parts);
    if (increase) memcpy((char *)s->frames + of_parts, increase, sizeof(*increase));
    pw_ring_commit(&s->header, (uint32_t)sizeof(pw_sample) + behind);
    return true;
}

bool
pw_put_mark(pw_thread *t, int64_t from, int64_t until, const pw_query_part *parts, uint32_t count,
            const pw_work_increase *increase)
{
    bool put = put_with_queries(t, PW_REC_MARK, from, until, parts, count, increase);
    if (!put) pw_count(PW_DROPPED, 1);
    return put;
}

bool
pw_put_query(pw_thread *t, const pw_query_part *part)
{
    return put_with_queries(t, PW_REC_QUERY, 0, 0, part, 1, NULL);
}

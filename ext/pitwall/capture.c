#include "capture.h"
#include "intern.h"
#include "sampler.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Captured words are what stood in a control frame at the moment of the signal. A frame that was half pushed can hold
 * a block's C function, a stale pointer, anything; naming such a word aborts Ruby. So a word is only believed when it
 * reads as an internal object (T_IMEMO) whose sub-type is one that real frames of this Ruby had at load. */
static uint16_t known_types; /* bit n: sub-type n has been seen in a frame known to be good */
static int probe[2] = {-1, -1};

static int
imemo_type(VALUE flags)
{
    return (int)((flags >> RUBY_FL_USHIFT) & 0xf);
}

/* Copies `n` bytes from an address that may not be mapped: the kernel checks it for us. */
static bool
safe_read(VALUE address, void *to, size_t n)
{
    if (probe[1] < 0) return false;
    if (write(probe[1], (const void *)address, n) != (ssize_t)n) return false;
    return read(probe[0], to, n) == (ssize_t)n;
}

bool
pw_frame_valid(VALUE frame)
{
    VALUE flags;
    if (frame == 0 || frame % sizeof(VALUE) != 0 || RB_SPECIAL_CONST_P(frame)) return false;
    if (!safe_read(frame, &flags, sizeof flags)) return false;
    return (flags & RUBY_T_MASK) == RUBY_T_IMEMO && (known_types >> imemo_type(flags)) & 1;
}

static VALUE
learn(VALUE self)
{
    VALUE frames[64];
    int lines[64];
    int n = rb_profile_frames(0, 64, frames, lines);
    for (int i = 0; i < n; i++) {
        if (!RB_SPECIAL_CONST_P(frames[i]) && RB_BUILTIN_TYPE(frames[i]) == (int)RUBY_T_IMEMO) {
            known_types |= (uint16_t)(1u << imemo_type(RBASIC(frames[i])->flags));
        }
    }
    return Qnil;
}

static void
open_probe(void)
{
    if (pipe(probe) != 0) {
        probe[0] = probe[1] = -1;
        return;
    }
    for (int i = 0; i < 2; i++) {
        int high = fcntl(probe[i], F_DUPFD_CLOEXEC, 3);
        close(probe[i]);
        probe[i] = high;
        if (high >= 0) fcntl(high, F_SETFL, O_NONBLOCK);
    }
}

void
pw_capture_init(void)
{
    open_probe();
    /* A C function called from an eval called from wherever we were required: method entries and an iseq. */
    VALUE teacher = rb_obj_alloc(rb_cObject);
    rb_define_singleton_method(teacher, "learn", learn, 0);
    rb_funcall(teacher, rb_intern("instance_eval"), 1, rb_str_new_cstr("learn"));
}

/* How many frames next to the root two stacks (leaf first) share. */
static int
common_with_previous(const pw_thread *t, const VALUE *frames, const int *lines, int n)
{
    int limit = n < t->previous_count ? n : t->previous_count;
    const VALUE *f = frames + n, *pf = t->previous_frames + t->previous_count;
    const int *l = lines + n, *pl = t->previous_lines + t->previous_count;
    int k = 0;
    while (k < limit && f[-k - 1] == pf[-k - 1] && l[-k - 1] == pl[-k - 1]) k++;
    return k;
}

static uint32_t
sample_bytes(uint32_t fresh, uint32_t owned)
{
    return (uint32_t)(sizeof(pw_sample) + (fresh + owned) * sizeof(VALUE) + fresh * sizeof(int));
}

/* Room for a sample of `fresh` frames, `owned` of them with owners; NULL when the ring is full. Nothing is lost then but this
 * look: the time goes to the next row, the previous stack stays the drain's. */
static pw_sample *
reserve(pw_thread *t, uint32_t common, uint32_t fresh, uint32_t owned, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    pw_sample *s = (pw_sample *)pw_ring_reserve(pw_session_ring(), sample_bytes(fresh, owned));
    if (!s) {
        pw_count(PW_DROPPED, 1);
        return NULL;
    }
    s->header.kind = PW_REC_SAMPLE;
    s->header.state = state;
    s->header.captures = captures;
    s->thread = t;
    s->wall = wall;
    s->cpu = cpu;
    s->common = common;
    s->fresh = fresh;
    s->owned = owned;
    return s;
}

static void
commit(pw_thread *t, pw_sample *s)
{
    int64_t wall = s->wall, cpu = s->cpu;
    pw_ring_commit(&s->header, sample_bytes(s->fresh, s->owned));
    t->sampled = true;
    atomic_store_explicit(&t->last_wall, wall, memory_order_relaxed);
    atomic_store_explicit(&t->last_cpu, cpu, memory_order_relaxed);
}

/* Writes a stack that stands in t->frames; on success it becomes the thread's previous one. */
static bool
put(pw_thread *t, int n, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    VALUE *frames = t->frames;
    int *lines = t->lines;
    int common = common_with_previous(t, frames, lines, n);
    int fresh = n - common;
    pw_sample *s = reserve(t, (uint32_t)common, (uint32_t)fresh, 0, state, captures, wall, cpu);
    if (!s) return false;
    memcpy(s->frames, frames, (size_t)fresh * sizeof(VALUE));
    memcpy(s->frames + fresh, lines, (size_t)fresh * sizeof(int));
    commit(t, s);
    t->frames = t->previous_frames, t->previous_frames = frames;
    t->lines = t->previous_lines, t->previous_lines = lines;
    t->previous_count = n;
    t->walk.agreed = 0;
    return true;
}

/* The same for a stack that an own walk has left in t->walk, whose first `same` control frames are as they were. */
static bool
put_walk(pw_thread *t, uint32_t same, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    pw_walk *w = &t->walk;
    uint32_t agreed = same < w->agreed ? same : w->agreed, total = pw_walk_listed(w, w->depth);
    uint32_t fresh = total - pw_walk_listed(w, agreed) + (leaf != 0), common = pw_walk_listed(w, agreed);
    bool owners = false, mark_cut = false;
    if (w->cut) { /* a frame of our own next to the root */
        if (agreed) common++;
        else mark_cut = true, fresh++;
    }
    for (uint32_t i = agreed; i < w->depth && !owners; i++) owners = w->seen[i].owner != 0;
    w->agreed = agreed;
    pw_sample *s = reserve(t, common, fresh, owners ? fresh : 0, state, captures, wall, cpu);
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
    t->previous_count = 0; /* should rb_profile_frames take the next one: nothing in common */
    return true;
}

static bool
capture_walk(pw_thread *t, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    uint32_t same = pw_walk_stack(&t->walk);
    uint32_t n = pw_walk_listed(&t->walk, t->walk.depth) + (leaf != 0);
    t->empty = n ? 0 : t->empty + 1;
    if (n == 0 && state == PW_UNKNOWN) {
        t->walk.agreed = 0;
        return true;
    }
    if (t->walk.cut) pw_count(PW_TRUNCATED, 1);
    return put_walk(t, same, leaf, state, captures, wall, cpu);
}

bool
pw_capture(pw_thread *t, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu)
{
    /* An M:N thread may have gone on to another native thread a moment ago: its stack is not ours to walk. */
    if (t->walk.thread && !atomic_load_explicit(&t->migrates, memory_order_relaxed)) {
        return capture_walk(t, leaf, state, captures, wall, cpu);
    }
    VALUE *frames = t->frames;
    int *lines = t->lines;
    int n = leaf ? 1 : 0;
    if (leaf) frames[0] = leaf, lines[0] = 0;
    int depth = pw_has_stack() ? rb_profile_frames(0, PW_MAX_DEPTH, frames + n, lines + n) : 0;
    n += depth;
    t->empty = n ? 0 : t->empty + 1;
    if (n == 0 && state == PW_UNKNOWN) return true; /* starting or ended: nothing to see */
    if (depth == PW_MAX_DEPTH) {
        frames[n] = PW_FRAME_TRUNCATED, lines[n++] = 0;
        pw_count(PW_TRUNCATED, 1);
    }
    return put(t, n, state, captures, wall, cpu);
}

static int64_t
read_cpu(pw_thread *t, int64_t wall)
{
    int64_t cpu = pw_thread_cpu(t), burnt = cpu - t->read_cpu, passed = wall - t->read_wall;
    bool all = burnt * 100 >= passed * 99;
    t->trust = !all ? 0 : t->trust < 8 ? t->trust + 1 : 8;
    t->read_cpu = cpu;
    t->read_wall = wall;
    t->unread = 0;
    t->cpu_stale = false;
    return cpu;
}

int64_t
pw_cpu_to_charge(pw_thread *t, bool waiting, int64_t wall)
{
    int64_t charged = atomic_load_explicit(&t->last_cpu, memory_order_relaxed);
    if (!waiting) {
        bool running = atomic_load_explicit(&t->state, memory_order_relaxed) == PW_RUNNING;
        bool read = !running || t->cpu_stale || t->cpu_due || t->trust < 8 || t->unread >= 3;
        int64_t cpu = read ? read_cpu(t, wall) : t->read_cpu + (wall - t->read_wall);
        if (!read) t->unread++;
        t->cpu_due = 0;
        return cpu > charged ? cpu : charged;
    }
    int64_t now = read_cpu(t, wall);
    int64_t ran = t->suspended_at - atomic_load_explicit(&t->last_wall, memory_order_relaxed);
    int64_t burnt = now - charged;
    if (burnt > 0 && ran > 0) t->cpu_due = burnt < ran ? burnt : ran;
    return now - t->cpu_due > charged ? now - t->cpu_due : charged;
}

bool
pw_capture_nothing(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu)
{
    return put(t, 0, state, 0, wall, cpu);
}

bool
pw_charge(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu)
{
    pw_sample *s = (pw_sample *)pw_ring_reserve(pw_session_ring(), sizeof(pw_sample));
    if (!s) return false;
    s->header.kind = kind;
    s->header.state = state;
    s->header.captures = 0;
    s->thread = t;
    s->wall = wall;
    s->cpu = cpu;
    s->common = (uint32_t)t->previous_count;
    s->fresh = s->owned = 0;
    pw_ring_commit(&s->header, sizeof(pw_sample));
    atomic_store_explicit(&t->last_wall, wall, memory_order_relaxed);
    atomic_store_explicit(&t->last_cpu, cpu, memory_order_relaxed);
    return true;
}

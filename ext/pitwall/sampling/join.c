#include "sampling/join.h"
#include "native/stack_bounds.h"
#include "output/intern.h"
#include "session/counters.h"
#include "session/threads.h"

/* A native frame that begins a run of Ruby code: the interpreter's loop, or compiled code that C code called. (The loop
 * calls compiled code, too. A compiler may put a part of the loop elsewhere, as a function of its own.) */
static bool
begins_run(const pw_native_room *room, uint32_t i)
{
    uint8_t kind = room->frames[i].kind, above = i + 1 < room->count ? room->frames[i + 1].kind : PW_NATIVE_FUNCTION;
    if (above == PW_NATIVE_LOOP) return false;
    return kind == PW_NATIVE_LOOP || (kind == PW_NATIVE_COMPILED && above != PW_NATIVE_COMPILED);
}

/* What is written, root first, and what of it is left out next to the root. */
typedef struct { pw_joined_stack *to; uint32_t skip; } writer;

/* The stack before is written over. */
static inline void
put_frame(pw_joined_stack *to, VALUE frame, VALUE owner, int line)
{
    uint32_t at = to->count++;
    if (at < to->agreed && (to->frames[at] != frame || to->lines[at] != line)) to->agreed = at;
    to->frames[at] = frame;
    to->owners[at] = owner;
    to->lines[at] = line;
}

static inline void
put(writer *w, VALUE frame, VALUE owner, int line)
{
    if (w->skip) w->skip--;
    else put_frame(w->to, frame, owner, line);
}

static VALUE
frame_of(const pw_native_frame *f)
{
    return f->kind == PW_NATIVE_COMPILED ? PW_FRAME_COMPILED : pw_native_frame_of(f->object, f->function);
}

/* Writes the native frames from place `from` down to place `until`, exclusive. (Places count from the leaf.) Several
 * frames of compiled code in a row are one. */
static void
put_native(writer *w, const pw_native_room *room, uint32_t from, uint32_t until)
{
    for (uint32_t i = from; i-- > until;) {
        const pw_native_frame *f = &room->frames[i];
        bool again = f->kind == PW_NATIVE_COMPILED && i + 1 < room->count && f[1].kind == PW_NATIVE_COMPILED;
        if (!again) put(w, frame_of(f), 0, 0);
    }
}

static void
put_ruby(writer *w, const pw_frame_seen *seen)
{
    put(w, seen->frame, seen->owner, seen->line);
}

/* Writes the control frames `i` to `end`, exclusive, with the native frames from place `from` down to place `until`.
 * A C function's control frame is directly above the native frame of the function. The function may have no native
 * frame of its own (it is about to be called, or its last call is a jump). Then the control frame comes at once. */
static void
put_run(writer *w, const pw_native_room *room, const pw_walk *walk, uint32_t i, uint32_t end, uint32_t from,
        uint32_t until)
{
    for (; i < end; i++) {
        const pw_frame_role *role = &room->roles[i];
        if (role->role == PW_ROLE_NONE) continue;
        if (role->role == PW_ROLE_C && role->function) {
            uint32_t at = from;
            while (at > until && room->frames[at - 1].function != role->function) at--;
            if (at > until) {
                put_native(w, room, from, at);
                from = at;
            }
        }
        put_ruby(w, &walk->seen[i]);
    }
    put_native(w, room, from, until);
}

/* Returns the control frame after the one at `i` where the next run begins. */
static uint32_t
end_of_run(const pw_native_room *room, const pw_walk *walk, uint32_t i)
{
    do i++;
    while (i < walk->depth && room->roles[i].role != PW_ROLE_FIRST);
    return i < walk->depth ? i : walk->depth;
}

/* Whether C code has switched to a stack of its own (swapcontext): then the native frames are those of the innermost
 * runs. One run less alone does not tell: the loop may be about to be called, with its control frame there already. */
static bool
is_switched(const pw_native_room *room, uint32_t runs)
{
    if (runs + 1 < room->runs) return true;
    uintptr_t root = room->count ? room->frames[room->count - 1].cfa : 0;
    return runs < room->runs && runs == 0 && root && (root < pw_own_stack.from || root > pw_own_stack.to);
}

/* Whether the runs are matched from the leaf on. They are if the root is not known, or is not the thread's. Otherwise
 * they are matched from the root on. */
static bool
is_from_leaf(const pw_native_room *room, const pw_walk *walk, uint32_t runs)
{
    return !room->whole || walk->cut || is_switched(room, runs);
}

/* Joins the control frames of the walk with the native frames, from a checkpoint on; the native leaf is at place `leaf`.
 * `runs` native frames begin a run. If the numbers of runs differ, then those at one end of the stack belong together.
 * `keeps`: makes checkpoints. */
static void
put_stack(writer *w, pw_native_room *room, const pw_walk *walk, pw_checkpoint from, uint32_t runs, uint32_t leaf,
          bool keeps)
{
    bool from_leaf = is_from_leaf(room, walk, runs);
    uint32_t i = from.control, at = room->count - from.native, until = at;
    uint32_t lonely = from_leaf && room->runs > runs ? room->runs - runs : 0,  /* runs without a native frame */
             without = from_leaf && runs > room->runs ? runs - room->runs : 0; /* native frames without a run */
    if (!from.native) { /* what is before the first run */
        while (i < walk->depth && room->roles[i].role != PW_ROLE_FIRST) i++;
        for (; lonely > 0; lonely--) i = end_of_run(room, walk, i);
        while (until > leaf && !begins_run(room, until - 1)) until--;
        put_run(w, room, walk, 0, i, at, until);
    }
    while (until > leaf) {
        if (keeps && i < walk->depth) {
            room->checkpoints[room->checkpoint_count++] = (pw_checkpoint){i, room->count - until, w->to->count};
        }
        at = until--;
        while (until > leaf && room->frames[until - 1].kind == PW_NATIVE_COMPILED) until--;
        put_native(w, room, at, until); /* the interpreter's loop, and compiled code that it called */
        at = until;
        while (until > leaf && !begins_run(room, until - 1)) until--;
        uint32_t first = i;
        if (without) without--;
        else if (i < walk->depth) i = end_of_run(room, walk, i);
        put_run(w, room, walk, first, i, at, until);
    }
    for (; i < walk->depth; i++) {
        if (room->roles[i].role != PW_ROLE_NONE) put_ruby(w, &walk->seen[i]);
    }
}

/* Counts what put_native writes of the frames from place `from` on. */
static uint32_t
native_frames(const pw_native_room *room, uint32_t from)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < from; i++) {
        n += !(room->frames[i].kind == PW_NATIVE_COMPILED && i + 1 < room->count &&
               room->frames[i + 1].kind == PW_NATIVE_COMPILED);
    }
    return n;
}

/* Forgets checkpoints that are no more: the run began at a frame that has changed. `inner`: see pw_join. */
static void
keep_checkpoints(pw_native_room *room, const pw_walk *walk, uint32_t kept, uint32_t inner)
{
    uint32_t control = walk->kept < walk->depth ? walk->kept : walk->depth;
    for (; room->checkpoint_count; room->checkpoint_count--) {
        const pw_checkpoint *last = &room->checkpoints[room->checkpoint_count - 1];
        if (last->control < control && last->native < kept && room->count - last->native > inner) return;
    }
}

void
pw_join(pw_native_room *room, pw_walk *walk, uint32_t kept, VALUE leaf, uint32_t inner)
{
    enum { MOST = PW_MAX_DEPTH };
    keep_checkpoints(room, walk, kept, inner);
    /* The last run is joined again, with all that is behind it. */
    uint32_t before = room->checkpoint_count ? --room->checkpoint_count : 0;
    pw_checkpoint from = before ? room->checkpoints[before] : (pw_checkpoint){0};
    uint32_t runs = before, there = room->count - from.native;
    uint32_t total = from.joined + native_frames(room, there) + (leaf != 0);
    for (uint32_t i = there; i-- > inner;) runs += begins_run(room, i);
    room->runs = before;
    for (uint32_t i = from.control; i < walk->depth; i++) {
        total += room->roles[i].role != PW_ROLE_NONE;
        room->runs += room->roles[i].role == PW_ROLE_FIRST;
    }
    bool cut = walk->cut || total > MOST, keeps = !cut && !is_from_leaf(room, walk, runs);
    if (!keeps) {
        room->checkpoint_count = 0;
        from = (pw_checkpoint){0};
    }
    pw_joined_stack *stack = &room->stack;
    writer w = {stack, total > MOST ? total - MOST : 0};
    stack->count = from.joined;
    if (cut) {
        put_frame(stack, PW_FRAME_TRUNCATED, 0, 0);
        pw_count(PW_TRUNCATED, 1);
    }
    room->guessed = runs != room->runs;
    put_stack(&w, room, walk, from, runs, inner, keeps);
    if (leaf) put(&w, leaf, 0, 0);
    put_native(&w, room, inner, 0);
    if (stack->agreed > stack->count) stack->agreed = stack->count;
    walk->kept = walk->depth;
}

#include "sampling/native_stack.h"
#include "native/interpreter.h"
#include "native/objects.h"
#include "native/unwind.h"
#include "output/intern.h"
#include <string.h>

/* The address range of this extension's code. Its functions are no part of the program's stack. */
static uintptr_t own_from, own_to;

/* The kind of a frame of the interpreter's loop. */
enum { LOOP = PW_NATIVE_UNKNOWN + 1 };

static bool ours(const pw_native_frame *f) { return f->pc >= own_from && f->pc < own_to; }

/* Leaves our own frames out, and finds the interpreter's loop. A hook was called by a function of Ruby that calls hooks
 * only: that function is left out as well. */
static uint32_t
leave_out_ours(pw_native_frame *frames, uint32_t count, bool in_hook)
{
    uint32_t kept = 0, i = 0;
    if (in_hook) {
        while (i < count && ours(&frames[i])) i++;
        if (i < count) i++;
    }
    for (; i < count; i++) {
        if (ours(&frames[i])) continue;
        if (kept != i) frames[kept] = frames[i];
        pw_native_frame *f = &frames[kept++];
        if (f->kind == PW_NATIVE_FUNCTION && pw_unwind_is_interpreter(f->function)) f->kind = LOOP;
    }
    return kept;
}

static void
unwind(pw_native_room *room)
{
    pw_unwind_end end = PW_UNWIND_LOST;
    pw_last_stack last = {room->frames, room->context && room->whole ? room->count : 0, room->generation};
    uint32_t kept, n = pw_unwind(room->context, room->fresh, PW_NATIVE_DEPTH, &last, &kept, &end);
    if (n + kept > PW_NATIVE_DEPTH) {
        last.count = 0;
        n = pw_unwind(room->context, room->fresh, PW_NATIVE_DEPTH, &last, &kept, &end);
    }
    n = leave_out_ours(room->fresh, n, !room->context);
    room->count = n + kept;
    room->frames = room->frames_end - room->count;
    memcpy(room->frames, room->fresh, n * sizeof(pw_native_frame));
    room->generation = last.generation;
    room->whole = end == PW_UNWOUND;
}

/* ---- joining ---- */

/* A native frame that begins a run of Ruby code: the interpreter's loop, or compiled code that C code called. (The loop
 * calls compiled code, too. A compiler may put a part of the loop elsewhere, as a function of its own.) */
static bool
begins_run(const pw_native_room *room, uint32_t i)
{
    uint8_t kind = room->frames[i].kind, above = i + 1 < room->count ? room->frames[i + 1].kind : PW_NATIVE_FUNCTION;
    if (above == LOOP) return false;
    return kind == LOOP || (kind == PW_NATIVE_COMPILED && above != PW_NATIVE_COMPILED);
}

/* What is written, root first, and what of it is left out next to the root. */
typedef struct { pw_joined_stack *to; uint32_t skip; } writer;

static inline void
put(writer *w, VALUE frame, VALUE owner, int line)
{
    if (w->skip) {
        w->skip--;
        return;
    }
    uint32_t at = w->to->count++;
    w->to->frames[at] = frame;
    w->to->owners[at] = owner;
    w->to->lines[at] = line;
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
put_run(writer *w, const pw_thread *t, uint32_t i, uint32_t end, uint32_t from, uint32_t until)
{
    const pw_native_room *room = t->native;
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
        put_ruby(w, &t->stack.walk.seen[i]);
    }
    put_native(w, room, from, until);
}

/* Returns the control frame after the one at `i` where the next run begins. */
static uint32_t
end_of_run(const pw_thread *t, uint32_t i)
{
    uint32_t depth = t->stack.walk.depth;
    do i++;
    while (i < depth && t->native->roles[i].role != PW_ROLE_FIRST);
    return i < depth ? i : depth;
}

/* Whether C code has switched to a stack of its own (swapcontext): then the native frames are those of the innermost
 * runs. A run less may have another reason: its control frame is there, and the loop is about to be called. */
static bool
is_switched(const pw_native_room *room, uint32_t runs)
{
    if (runs + 1 < room->runs) return true;
    uintptr_t root = room->count ? room->frames[room->count - 1].cfa : 0;
    return runs < room->runs && runs == 0 && root && (root < pw_own_stack.from || root > pw_own_stack.to);
}

/* Joins the control frames of the walk with the native frames below place `top`; the leaf is at place `leaf`. `runs`
 * native frames begin a run. If the numbers of runs differ, then the runs at the root belong together and the others
 * are at the leaf. If the root is not known, or is not the thread's, then the runs at the leaf belong together. */
static void
put_stack(writer *w, const pw_thread *t, uint32_t runs, uint32_t leaf)
{
    const pw_native_room *room = t->native;
    const pw_walk *walk = &t->stack.walk;
    bool from_leaf = !room->whole || walk->cut || is_switched(room, runs);
    uint32_t i = 0, at = room->count, until = at;
    uint32_t lonely = from_leaf && room->runs > runs ? room->runs - runs : 0,  /* runs without a native frame */
             without = from_leaf && runs > room->runs ? runs - room->runs : 0; /* native frames without a run */
    /* what is before the first run */
    while (i < walk->depth && room->roles[i].role != PW_ROLE_FIRST) i++;
    for (; lonely > 0; lonely--) i = end_of_run(t, i);
    while (until > leaf && !begins_run(room, until - 1)) until--;
    put_run(w, t, 0, i, at, until);
    while (until > leaf) {
        at = until--;
        while (until > leaf && room->frames[until - 1].kind == PW_NATIVE_COMPILED) until--;
        put_native(w, room, at, until); /* the interpreter's loop, and compiled code that it called */
        at = until;
        while (until > leaf && !begins_run(room, until - 1)) until--;
        uint32_t from = i;
        if (without) without--;
        else if (i < walk->depth) i = end_of_run(t, i);
        put_run(w, t, from, i, at, until);
    }
    for (; i < walk->depth; i++) {
        if (room->roles[i].role != PW_ROLE_NONE) put_ruby(w, &walk->seen[i]);
    }
}

/* Counts what put_native writes. */
static uint32_t
native_frames(const pw_native_room *room)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < room->count; i++) {
        n += !(room->frames[i].kind == PW_NATIVE_COMPILED && i + 1 < room->count &&
               room->frames[i + 1].kind == PW_NATIVE_COMPILED);
    }
    return n;
}

/* Joins the stacks. `inner`: the native frames that stand below `leaf`, which is 0 where there is no such frame. */
static void
join(pw_thread *t, VALUE leaf, uint32_t inner)
{
    pw_native_room *room = t->native;
    const pw_walk *walk = &t->stack.walk;
    uint32_t runs = 0, total = native_frames(room) + (leaf != 0), most = PW_MAX_DEPTH;
    for (uint32_t i = room->count; i-- > inner;) runs += begins_run(room, i);
    for (uint32_t i = 0; i < walk->depth; i++) total += room->roles[i].role != PW_ROLE_NONE;
    bool cut = walk->cut || total > most;
    writer w = {&room->stack, total > most ? total - most : 0};
    room->stack.count = 0;
    room->stack.left_out = walk->cut + w.skip;
    if (cut) {
        room->stack.frames[0] = PW_FRAME_TRUNCATED, room->stack.owners[0] = 0, room->stack.lines[0] = 0;
        room->stack.count = 1;
        pw_count(PW_TRUNCATED, 1);
    }
    room->guessed = runs != room->runs;
    put_stack(&w, t, runs, inner);
    if (leaf) put(&w, leaf, 0, 0);
    put_native(&w, room, inner, 0);
}

static void
count(const pw_native_room *room)
{
    pw_count(PW_NATIVE_STACKS, 1);
    if (!room->whole) pw_count(PW_NATIVE_LOST, 1);
    if (room->guessed) pw_count(PW_NATIVE_GUESSED, 1);
}

void
pw_native_stack_take(pw_thread *t)
{
    pw_native_room *room = t->native;
    room->runs = pw_frame_roles(&t->stack.walk, room->roles);
    unwind(room);
    join(t, 0, 0);
    count(room);
}

/* ---- garbage collection ---- */

void
pw_native_collection_begins(pw_thread *t)
{
    pw_native_room *room = t->native;
    room->runs = pw_frame_roles(&t->stack.walk, room->roles);
    unwind(room);
    join(t, 0, 0);
    memcpy(room->collection, room->frames, room->count * sizeof(pw_native_frame));
    room->collection_count = room->count;
    /* the functions that called this hook are no part of the stacks that follow */
    while (room->stack.count && pw_frame_is_native(room->stack.frames[room->stack.count - 1])) room->stack.count--;
}

void pw_native_collection_ends(pw_thread *t) { t->native->collection_count = 0; }

/* The number of frames next to the root that both native stacks have. */
static uint32_t
common_with_beginning(const pw_native_room *room)
{
    const pw_native_frame *f = room->frames + room->count, *b = room->collection + room->collection_count;
    uint32_t limit = room->count < room->collection_count ? room->count : room->collection_count, k = 0;
    while (k < limit && f[-1].function == b[-1].function && f[-1].cfa == b[-1].cfa && f[-1].kind == b[-1].kind) {
        f--, b--, k++;
    }
    return k;
}

bool
pw_native_collection_take(pw_thread *t, VALUE leaf)
{
    pw_native_room *room = t->native;
    if (!room->collection_count) return false;
    unwind(room);
    join(t, leaf, room->count - common_with_beginning(room));
    count(room);
    return true;
}

/* ---- preparing ---- */

const char *
pw_native_refusal(void)
{
    if (pw_walk_refusal()) return pw_walk_refusal();
    if (!pw_unwind_prepare((uintptr_t)rb_funcallv)) return pw_unwind_refusal();
    const pw_object *own = pw_object_at((uintptr_t)pw_native_refusal);
    own_from = own ? own->from : 0;
    own_to = own ? own->to : 0;
    return NULL;
}

/* native_refusal -> nil, or a String: why there are no native frames here */
static VALUE
native_native_refusal(VALUE self)
{
    const char *refusal = pw_native_refusal();
    return refusal ? rb_str_new_cstr(refusal) : Qnil;
}

/* interpreter -> nil, or [path, address…]: the object that has the interpreter's loop, and the virtual addresses in it
 * at which the loop and its parts begin. To be called while there is no recording. */
static VALUE
native_interpreter(VALUE self)
{
    uintptr_t functions[16];
    if (pw_native_refusal()) return Qnil;
    uint32_t n = pw_interpreter_functions(functions, sizeof functions / sizeof functions[0]);
    const pw_object *object = n ? pw_object_at(functions[0]) : NULL;
    VALUE found = object ? rb_ary_new_from_args(1, rb_str_new_cstr(object->path)) : Qnil;
    for (uint32_t i = 0; i < n && object; i++) rb_ary_push(found, ULL2NUM(functions[i] - object->bias));
    if (!pw_session_generation()) pw_unwind_release();
    return found;
}

void
pw_native_stack_init(VALUE native)
{
    rb_define_singleton_method(native, "interpreter", native_interpreter, 0);
    rb_define_singleton_method(native, "native_refusal", native_native_refusal, 0);
}

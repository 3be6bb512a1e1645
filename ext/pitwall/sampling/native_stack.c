#include "sampling/native_stack.h"
#include "native/interpreter.h"
#include "native/objects.h"
#include "native/unwind.h"
#include "output/intern.h"
#include "sampling/join.h"
#include <string.h>

/* The address range of this extension's code. Its functions are no part of the program's stack. */
static uintptr_t own_from, own_to;

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
        if (f->kind == PW_NATIVE_FUNCTION && pw_unwind_is_interpreter(f->function)) f->kind = PW_NATIVE_LOOP;
    }
    return kept;
}

/* Returns how many frames next to the root are those of the last stack. */
static uint32_t
unwind(pw_native_room *room)
{
    pw_unwind_end end = PW_UNWIND_LOST;
    pw_last_stack last = {room->frames, room->whole ? room->count : 0, room->generation};
    uint32_t kept, n = pw_unwind(room->context, room->fresh, PW_NATIVE_DEPTH, &last, &kept, &end);
    /* what called a hook has to be among the frames that were walked */
    if (n + kept > PW_NATIVE_DEPTH || (!room->context && kept && n && ours(&room->fresh[n - 1]))) {
        last.count = 0;
        n = pw_unwind(room->context, room->fresh, PW_NATIVE_DEPTH, &last, &kept, &end);
    }
    n = leave_out_ours(room->fresh, n, !room->context);
    room->count = n + kept;
    room->frames = room->frames_end - room->count;
    memcpy(room->frames, room->fresh, n * sizeof(pw_native_frame));
    room->generation = last.generation;
    room->whole = end == PW_UNWOUND;
    return kept;
}

static void
count(const pw_native_room *room)
{
    pw_count(PW_NATIVE_STACKS, 1);
    if (!room->whole) pw_count(PW_NATIVE_LOST, 1);
    if (room->guessed) pw_count(PW_NATIVE_GUESSED, 1);
}

/* Joins the walk that was just made with the native stack from here on. The frame `leaf` stands at the leaf (0: none). */
static void
take(pw_thread *t, VALUE leaf)
{
    pw_native_room *room = t->native;
    pw_walk *walk = &t->stack.walk;
    bool whole = pw_frame_roles(walk, room->roles_whole ? walk->kept : 0, room->roles);
    if (!whole) room->checkpoint_count = 0;
    room->roles_whole = whole;
    uint32_t kept = unwind(room);
    pw_join(room, walk, kept, leaf, 0);
}

void
pw_native_stack_take(pw_thread *t, VALUE leaf)
{
    take(t, leaf);
    count(t->native);
}

/* ---- garbage collection ---- */

void
pw_native_collection_begins(pw_thread *t)
{
    pw_native_room *room = t->native;
    take(t, 0);
    memcpy(room->collection, room->frames, room->count * sizeof(pw_native_frame));
    room->collection_count = room->count;
    /* the functions that called this hook are no part of the stacks that follow */
    pw_joined_stack *stack = &room->stack;
    while (stack->count && pw_frame_is_native(stack->frames[stack->count - 1])) stack->count--;
    if (stack->agreed > stack->count) stack->agreed = stack->count;
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
    uint32_t kept = unwind(room);
    pw_join(room, &t->stack.walk, kept, leaf, room->count - common_with_beginning(room));
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

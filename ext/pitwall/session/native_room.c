#include "session/native_room.h"
#include <sys/mman.h>

enum { NATIVE_BYTES = PW_NATIVE_DEPTH * sizeof(pw_native_frame) };

/* `room`: frames of the stack; an even number, so that what follows is aligned. */
static uint8_t *
place(pw_joined_stack *stack, uint32_t room, uint8_t *at)
{
    stack->frames = (VALUE *)at, at += room * sizeof(VALUE);
    stack->owners = (VALUE *)at, at += room * sizeof(VALUE);
    stack->lines = (int *)at;
    return at + room * sizeof(int);
}

/* One mapping, of which only the pages that stacks reach are used. */
pw_native_room *
pw_native_room_new(uint32_t depth)
{
    uint32_t room = (depth + 3) & ~1u; /* with the mark of a cut */
    size_t bytes = sizeof(pw_native_room) + 2 * (size_t)room * (2 * sizeof(VALUE) + sizeof(int)) +
                   depth * sizeof(pw_frame_role) + 3 * NATIVE_BYTES + 64;
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    pw_native_room *made = (pw_native_room *)at;
    made->bytes = bytes;
    at += (sizeof(pw_native_room) + 15) & ~(size_t)15;
    made->roles = (pw_frame_role *)at, at += depth * sizeof(pw_frame_role);
    at += NATIVE_BYTES;
    made->frames = made->frames_end = (pw_native_frame *)at;
    made->fresh = (pw_native_frame *)at, at += NATIVE_BYTES;
    made->collection = (pw_native_frame *)at, at += NATIVE_BYTES;
    at = place(&made->stack, room, at);
    place(&made->sent, room, at);
    return made;
}

void pw_native_room_free(pw_native_room *room) { munmap(room, room->bytes); }

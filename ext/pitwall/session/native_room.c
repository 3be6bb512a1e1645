#include "session/native_room.h"
#include <sys/mman.h>

enum { NATIVE_BYTES = PW_NATIVE_DEPTH * sizeof(pw_native_frame) };

/* One mapping, of which only the pages that stacks reach are used. */
pw_native_room *
pw_native_room_new(uint32_t depth)
{
    uint32_t room = depth + 1; /* with the mark of a cut */
    size_t bytes = sizeof(pw_native_room) + (size_t)room * (2 * sizeof(VALUE) + sizeof(int)) +
                   depth * (sizeof(pw_frame_role) + sizeof(pw_checkpoint)) + 3 * NATIVE_BYTES + 64;
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
    made->stack.frames = (VALUE *)at, at += room * sizeof(VALUE);
    made->stack.owners = (VALUE *)at, at += room * sizeof(VALUE);
    made->stack.lines = (int *)at, at += room * sizeof(int);
    made->checkpoints = (pw_checkpoint *)at;
    return made;
}

void pw_native_room_free(pw_native_room *room) { munmap(room, room->bytes); }

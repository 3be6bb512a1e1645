/* A thread's room for stacks with native frames. Threads have it only where such stacks are recorded. */
#ifndef PITWALL_NATIVE_ROOM_H
#define PITWALL_NATIVE_ROOM_H

#include "native/native_frame.h"
#include "vm/frame_roles.h"

/* Most native frames of a stack. Of a deeper stack, frames at the root are left out. */
#define PW_NATIVE_DEPTH 16384

/* A joined stack, root first. */
typedef struct {
    VALUE *frames, *owners;
    int *lines;
    uint32_t count;
    uint32_t left_out; /* frames next to the root that are left out, for lack of room */
} pw_joined_stack;

/* Written with `sample.being_taken`. */
typedef struct pw_native_room {
    size_t bytes;        /* of the room itself */
    const void *context; /* the handler's ucontext_t; NULL: no handler runs */
    /* the control frames of the last walk */
    pw_frame_role *roles;
    uint32_t runs;
    /* the last native stack, leaf first */
    pw_native_frame *frames;
    uint32_t count;
    pw_native_frame *frames_end, *fresh; /* the root stands before frames_end; fresh: room for the frames of a walk */
    uint64_t generation;                 /* see pw_last_stack */
    bool whole;   /* reaches the function that the thread or fiber began with */
    bool guessed; /* the runs of the two stacks did not match */
    /* the stack that is made, and the stack that was sent last, as the record number `serial` of the thread */
    pw_joined_stack stack, sent;
    uint32_t serial;
    /* the native stack where the running step of a garbage collection began; 0 frames: not taken */
    pw_native_frame *collection;
    uint32_t collection_count;
} pw_native_room;

/* `depth`: most frames of a joined stack, and of a walk. NULL: no memory */
pw_native_room *pw_native_room_new(uint32_t depth);
void pw_native_room_free(pw_native_room *room);

#endif

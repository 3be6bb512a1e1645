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
    uint32_t agreed;   /* frames from the root that are as the drain was told */
} pw_joined_stack;

/* Where a run of Ruby code begins in the stack that was joined last. All three are counted from the root. */
typedef struct { uint32_t control, native, joined; } pw_checkpoint;

/* Written with `sample.being_taken`. */
typedef struct pw_native_room {
    size_t bytes;        /* of the room itself */
    const void *context; /* the handler's ucontext_t; NULL: no handler runs */
    /* the control frames of the last walk */
    pw_frame_role *roles;
    bool roles_whole; /* the stack fitted the walk */
    uint32_t runs;
    /* the last native stack, leaf first */
    pw_native_frame *frames;
    uint32_t count;
    pw_native_frame *frames_end, *fresh; /* the root stands before frames_end; fresh: room for the frames of a walk */
    uint64_t generation;                 /* see pw_last_stack */
    bool whole;   /* reaches the function that the thread or fiber began with */
    bool guessed; /* the runs of the two stacks did not match */
    pw_joined_stack stack;
    uint32_t serial; /* the stack was sent to the drain as this record of the thread */
    pw_checkpoint *checkpoints; /* of the first runs (join.c) */
    uint32_t checkpoint_count;
    /* the native stack where the running step of a garbage collection began; 0 frames: not taken */
    pw_native_frame *collection;
    uint32_t collection_count;
} pw_native_room;

/* `depth`: most frames of a joined stack, and of a walk. NULL: no memory */
pw_native_room *pw_native_room_new(uint32_t depth);
void pw_native_room_free(pw_native_room *room);

#endif

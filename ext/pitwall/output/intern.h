/* The tables that turn raw stacks into small numbers: frames (method or iseq), stack-tree nodes, strings.
 *
 * Owned by the drain thread; the lock of the session is held around every call, because GC marks the frames and the
 * resolver names them. Ids count up and are never reused, so the tables can be emptied to bound memory
 * (pw_intern_reset) and the recording stays readable: later chunks simply define new ids. */
#ifndef PITWALL_INTERN_H
#define PITWALL_INTERN_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include "tools/buffer.h"

enum { PW_KIND_RUBY, PW_KIND_C, PW_KIND_GC, PW_KIND_NATIVE, PW_KIND_OURS };

/* Frames that no Ruby object stands for; fixnums, which no captured pointer can be. */
#define PW_FRAME_MARKING     INT2FIX(1)
#define PW_FRAME_SWEEPING    INT2FIX(2)
#define PW_FRAME_TRUNCATED   INT2FIX(3)
#define PW_FRAME_NOT_SAMPLED INT2FIX(4)
#define PW_FRAME_NOT_TRACED  INT2FIX(5)
/* From this number on: C functions that the tracer knows by class and name. */
#define PW_FRAME_CALLED 1000

/* Bounds of memory in the measured process: 6 MB of nodes (twice that while names are awaited), a few MB of frames
 * and strings. */
#define PW_MAX_NODES (1u << 17)
#define PW_MAX_FRAMES (1u << 17)
#define PW_MAX_STRINGS (1u << 17)

typedef struct {
    VALUE frame;
    VALUE owner; /* the method entry that an iseq was seen to run for; 0: none; PW_DOUBTFUL */
    uint32_t id;
    bool resolved;
    bool waiting; /* for an owner to be told: not named before */
    bool waited;  /* in vain */
} pw_frame_entry;

typedef struct {
    VALUE frame; /* the captured word itself: known stacks need no look at the frames */
    uint32_t parent, line, id; /* id 0: empty slot */
} pw_node_slot;

typedef struct {
    /* frames: an open-addressing index into a dense list */
    pw_frame_entry *frames;
    uint32_t frame_count, frame_capacity;
    uint32_t *frame_index;
    uint32_t frame_slots; /* a power of two */
    uint32_t unresolved_from; /* frames before this one are resolved, or wait */
    uint32_t next_frame_id;
    /* nodes */
    pw_node_slot *nodes;
    uint32_t node_slots, node_count, next_node_id;
    /* nodes not yet written */
    pw_buffer new_parents, new_frames, new_lines;
    uint32_t new_nodes, first_new_node;
    /* strings */
    char *arena;
    size_t arena_size, arena_capacity;
    struct pw_string_slot { uint32_t offset, length, id; } *strings;
    uint32_t string_slots, string_count, next_string_id;
    pw_buffer new_string_lengths, new_string_bytes;
    uint32_t new_strings, first_new_string;
} pw_intern;

bool pw_intern_init(pw_intern *t);
void pw_intern_free(pw_intern *t);
/* Empties frames and nodes and strings, keeps counting ids. `before` gets the old tables, to ask for owners and
 * forget. */
/* False: there is no memory, and all is as it was. */
bool pw_intern_reset(pw_intern *t, pw_intern *before);
void pw_intern_forget(pw_intern *before);
VALUE pw_intern_owner(const pw_intern *t, VALUE frame);
bool pw_intern_full(const pw_intern *t); /* time for a reset */

/* The first `owner` that is one counts. */
uint32_t pw_intern_frame(pw_intern *t, VALUE frame, VALUE owner);
/* The same for a frame that is known already, if it has no name yet. */
void pw_intern_tell_owner(pw_intern *t, VALUE frame, VALUE owner);
/* All frames that wait for an owner are to be named without. Whether there were any. */
bool pw_intern_end_waiting(pw_intern *t);
uint32_t pw_intern_node(pw_intern *t, uint32_t parent, VALUE frame, VALUE owner, uint32_t line);
/* The same for those who keep a tree of their own and so know that the node is new: it takes no memory here. */
uint32_t pw_intern_new_node(pw_intern *t, uint32_t parent, VALUE frame, VALUE owner, uint32_t line);
uint32_t pw_intern_string(pw_intern *t, const char *bytes, size_t length);

#endif

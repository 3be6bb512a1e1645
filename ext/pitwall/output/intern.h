/* The tables that turn raw stacks into small numbers: frames (method or iseq), stack-tree nodes, strings.
 *
 * The drain owns the tables. Every call is made under the session's lock, because GC marks the frames and naming jobs
 * read them. Ids count up and are never reused. So the tables can be emptied to bound memory (pw_intern_reset), and
 * the recording stays readable: later chunks define new ids. */
#ifndef PITWALL_INTERN_H
#define PITWALL_INTERN_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include "tools/buffer.h"

enum { PW_KIND_RUBY, PW_KIND_C, PW_KIND_GC, PW_KIND_NATIVE, PW_KIND_OURS };

/* Frames without a Ruby object. They are fixnums, so they differ from every captured pointer. */
#define PW_FRAME_MARKING     INT2FIX(1)
#define PW_FRAME_SWEEPING    INT2FIX(2)
#define PW_FRAME_TRUNCATED   INT2FIX(3)
#define PW_FRAME_NOT_SAMPLED INT2FIX(4)
#define PW_FRAME_NOT_TRACED  INT2FIX(5)
#define PW_FRAME_COMPILED    INT2FIX(6) /* code that YJIT or ZJIT made */
#define PW_FRAME_WITHOUT_GVL INT2FIX(7) /* what a thread runs that has given the GVL up */
/* Frame numbers from here on are C functions that the tracer knows by class and name. */
#define PW_FRAME_CALLED 1000
/* A native frame is the address of its function and the number of its object; unknown code has neither. The number
 * tells a function from another object's that is loaded at the same address later. */
#define PW_NATIVE_BIT ((VALUE)1 << 63)
enum { PW_FUNCTION_BITS = 49, PW_OBJECT_BITS = 13 };
#define PW_FRAME_UNKNOWN (PW_NATIVE_BIT | RUBY_FIXNUM_FLAG)
static inline VALUE
pw_native_frame_of(uint16_t object, uintptr_t function)
{
    if ((uint64_t)function >> PW_FUNCTION_BITS) return PW_FRAME_UNKNOWN;
    return PW_NATIVE_BIT | (VALUE)object << (PW_FUNCTION_BITS + 1) | (VALUE)function << 1 | RUBY_FIXNUM_FLAG;
}
static inline bool
pw_frame_is_native(VALUE f)
{
    return f == PW_FRAME_COMPILED || f == PW_FRAME_WITHOUT_GVL || (f & 1 && f & PW_NATIVE_BIT);
}
static inline uintptr_t
pw_function_of_frame(VALUE f)
{
    return f >> 1 & (((VALUE)1 << PW_FUNCTION_BITS) - 1);
}
/* pw_object's number + 1; 0: none */
static inline uint16_t pw_object_of_frame(VALUE f) { return (uint16_t)((f & ~PW_NATIVE_BIT) >> (PW_FUNCTION_BITS + 1)); }

/* Bounds of memory in the measured process: 4 MB of nodes (8 MB while names are missing), a few MB of frames and
 * strings. */
#define PW_MAX_NODES (1u << 17)
#define PW_MAX_FRAMES (1u << 17)
#define PW_MAX_STRINGS (1u << 17)

typedef struct {
    VALUE frame;
    VALUE owner; /* the method entry of the frame that ran this iseq; 0: none; or PW_DOUBTFUL */
    uint32_t id;
    bool resolved;
    bool waiting; /* waits for an owner; not named before that */
    bool waited;  /* waited, but no owner came */
} pw_frame_entry;

typedef struct {
    VALUE frame; /* the captured word itself, so that known stacks need no lookup of frames */
    uint32_t parent, line, id;
} pw_node_entry;

typedef struct {
    /* frames: an open-addressing index into a dense list */
    pw_frame_entry *frames;
    uint32_t frame_count, frame_capacity;
    uint32_t *frame_index;
    uint32_t frame_slots; /* a power of two */
    uint32_t unresolved_from; /* frames before this index are resolved or waiting */
    uint32_t nameless_native; /* native frames before this index are named (native_names.c) */
    uint32_t next_frame_id;
    /* nodes: likewise. A stack's new nodes follow one another in the list */
    pw_node_entry *nodes;
    uint32_t node_count, node_capacity;
    uint32_t *node_index;
    uint32_t node_slots; /* a power of two */
    uint32_t next_node_id, ids_before; /* ids_before: given when the list was empty */
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
/* Empties frames, nodes and strings. Ids go on counting. `before` gets the old tables: the caller reads owners from
 * `before`, then calls pw_intern_forget. False: out of memory, and nothing has changed. */
bool pw_intern_reset(pw_intern *t, pw_intern *before);
/* Copies the frames without a name from the old tables into the new ones, which hold no node yet. Frames keep their
 * numbers, so they can still be named. At most PW_MAX_FRAMES are copied. */
void pw_intern_carry_nameless(pw_intern *t, const pw_intern *before);
void pw_intern_forget(pw_intern *before);
VALUE pw_intern_owner(const pw_intern *t, VALUE frame);
bool pw_intern_full(const pw_intern *t); /* the tables need a reset */

/* Returns the frame's id. A frame keeps the first `owner` that is an object. */
uint32_t pw_intern_frame(pw_intern *t, VALUE frame, VALUE owner);
/* Sets the owner of a frame that is in the table, if the frame has no name yet. */
void pw_intern_tell_owner(pw_intern *t, VALUE frame, VALUE owner);
/* Makes all waiting frames ready for naming without an owner. True: there were such frames. */
bool pw_intern_end_waiting(pw_intern *t);
uint32_t pw_intern_node(pw_intern *t, uint32_t parent, VALUE frame, VALUE owner, uint32_t line);
/* Like pw_intern_node, for a caller whose own tree shows that the node is new. Takes no memory in the node table. */
uint32_t pw_intern_new_node(pw_intern *t, uint32_t parent, VALUE frame, VALUE owner, uint32_t line);
uint32_t pw_intern_string(pw_intern *t, const char *bytes, size_t length);

#endif

/* Pitwall's own walk of a thread's control frames, used where the layout is proven for the running Ruby.
 *
 * rb_profile_frames gives the method for a block, and works out the line of every frame each time. This walk gives
 * the iseq, and looks only at frames that differ from the frames of the previous walk. Both list the same frames. */
#ifndef PITWALL_STACK_WALK_H
#define PITWALL_STACK_WALK_H

#include "vm/vm_compat.h"

/* The owner is not known: a signal handler or a look from outside found the frame half pushed, or gone. */
#define PW_DOUBTFUL ((VALUE)1)

/* Distinguishes a control frame from an earlier frame in the same place. */
typedef struct {
    VALUE iseq, ep;
    VALUE place; /* pc; for a frame without an iseq, the word that names the method */
} pw_frame_key;

/* What the walk has found about a control frame. */
typedef struct {
    VALUE frame;     /* iseq, or a C function's method entry; 0: a control frame that is not listed */
    /* the method entry that an iseq runs for, needed for the name; 0: none, or known already; or PW_DOUBTFUL */
    VALUE owner;
    int line;
    uint32_t listed; /* number of listed frames from the root to this frame */
} pw_frame_seen;

/* A thread's last walk, root first. */
typedef struct {
    const void *thread; /* rb_thread_t; NULL: not to be walked */
    const void *root;   /* the execution context whose stack lasts as long as the thread; NULL: not known */
    /* base, end: that context's stack. top: its leaf at the last look from outside; NULL: no look yet */
    const VALUE *base, *end, *top;
    pw_frame_key *keys;
    pw_frame_seen *seen;
    uint32_t room, depth;
    uint32_t cut;     /* control frames next to the root that are left out, for lack of room */
    uint32_t agreed;  /* frames from the root that are as the drain was told */
    uint32_t kept;    /* frames from the root that no walk has changed since pw_join set this (join.h) */
    bool every_owner; /* look for the owner of known frames, too */
    bool settled;     /* the stack is walked in hooks only, where no frame is half pushed */
} pw_walk;

size_t pw_walk_bytes(uint32_t room);
void pw_walk_place(pw_walk *w, void *memory, uint32_t room);

/* Makes `w` walk this Thread's stack, if own walks are in use. */
void pw_walk_aim(pw_walk *w, VALUE thread);

/* Walks the calling thread's stack. Returns how many control frames next to the root are unchanged.
 * async-signal-safe */
uint32_t pw_walk_stack(pw_walk *w);

/* Walks the stack of another thread while that thread runs. Allowed only where such walks are proven
 * (pw_outside_refusal), and only while no garbage is collected. holds reader lock */
typedef enum {
    PW_SEEN,
    /* the thread moved too far during the look: try again. *same is right, and the frames seen are no stack */
    PW_TORN,
    PW_NOTHING  /* the thread has no stack: it has not begun, or has ended */
} pw_outcome;
pw_outcome pw_walk_outside(pw_walk *w, uint32_t *same);
/* Called in the thread itself. If the thread is not in a fiber now, its stack may be read in place. needs GVL */
void pw_walk_find_root(pw_walk *w);

/* For hooks, where no frame is half pushed. `context` is an execution context. All but pw_walk_own: needs GVL */
bool pw_walk_own(void); /* whether the other functions of this group may be called */
const void *pw_walk_context_of(VALUE thread);
uint32_t pw_walk_context(pw_walk *w, const void *context); /* as pw_walk_stack */
/* Returns the control frame, from `from` on, of the innermost code written in Ruby; NULL: there is none. */
const VALUE *pw_walk_innermost(const void *context, const VALUE *from);
/* Finds the innermost frame of Ruby code in the calling thread whose iseq is wanted, among the first `most` control
 * frames. No hook may be running. needs GVL */
bool pw_walk_find(bool (*wanted)(VALUE iseq, void *data), void *data, uint32_t most, pw_frame_seen *found);
/* Whether a control frame of the context's stack is at this address now. False for an address on another stack. */
bool pw_walk_has(const void *context, const VALUE *control_frame);
bool pw_walk_look(const void *context, const VALUE *control_frame, pw_frame_seen *seen);

static inline uint32_t
pw_walk_listed(const pw_walk *w, uint32_t control_frames)
{
    return control_frames ? w->seen[control_frames - 1].listed : 0;
}

/* Whether the method entry belongs to a method written in Ruby. The entry must be valid. */
bool pw_method_is_ruby(VALUE method_entry);

/* Whether the frame is an iseq rather than a method entry. The frame must be valid. */
bool pw_frame_is_iseq(VALUE frame);

/* Whether own walks are in use. Only then may the functions below be called. `ec` is the execution context
 * (rb_execution_context_t) of a thread that has the GVL, between two instructions. */
bool pw_walk_in_use(void);
const char *pw_walk_refusal(void); /* NULL, or why not */
/* Returns the method entry that a Ruby frame runs for, or 0. */
VALUE pw_walk_owner(const void *ec, const VALUE *cfp);
/* Calls `each` for the context's frames from the root to the frame at `leaf`. Ruby frames are iseqs, C functions are
 * method entries. */
void pw_walk_frames(const void *ec, const VALUE *leaf,
                    void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data);

/* ---- for the files of vm/ ---- */

struct pw_vm_stack;
/* Walks the frames. Returns how many control frames next to the root are unchanged. async-signal-safe */
uint32_t pw_walk_frames_of(pw_walk *w, const struct pw_vm_stack *s);

/* Returns the C function that code at `pc` calls, or called shortly before; 0: not known. holds reader lock */
VALUE pw_c_function_called(VALUE iseq, VALUE pc);

/* Sets the result of the self-tests (walk_tests.c). NULL: own walks are right. */
void pw_walk_set_refusal(const char *why);
/* Looks up the function of Ruby that the walk needs for lines. False: this Ruby hides the function. */
bool pw_walk_has_lines(void);
/* Notes that call sites name C functions as expected. */
void pw_walk_trust_sites(void);

#endif

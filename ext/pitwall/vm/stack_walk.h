/* An own walk of a thread's control frames, where the layout is proven for the running Ruby.
 *
 * rb_profile_frames gives the method for a block, and works out the line of every frame each time. This walk gives the
 * iseq, and looks only at frames that differ from those of the walk before. It lists the same frames. */
#ifndef PITWALL_STACK_WALK_H
#define PITWALL_STACK_WALK_H

#include "vm/vm_compat.h"

/* An owner that a signal's handler or a look from outside could not tell: the frame was half pushed, or had gone. */
#define PW_DOUBTFUL ((VALUE)1)

/* What tells a control frame from the one that stood in its place. */
typedef struct {
    VALUE iseq, ep;
    VALUE place; /* pc; where there is no iseq, the word that names the method */
} pw_frame_key;

/* What it was found to be. */
typedef struct {
    VALUE frame;     /* iseq, or a C function's method entry; 0: a control frame that is not listed */
    VALUE owner;     /* the method entry an iseq runs for, for its name; 0: none, or known already; or PW_DOUBTFUL */
    int line;
    uint32_t listed; /* frames from the root to here */
} pw_frame_seen;

/* A thread's last walk, root first. */
typedef struct {
    const void *thread; /* rb_thread_t; NULL: not to be walked */
    const void *root;   /* the execution context whose stack lasts as long as the thread; NULL: not known */
    /* that stack, and where its leaf was at the last look from outside; top NULL: none yet */
    const VALUE *base, *end, *top;
    pw_frame_key *keys;
    pw_frame_seen *seen;
    uint32_t room, depth;
    uint32_t cut;     /* control frames next to the root left out, for lack of room */
    uint32_t agreed;  /* this many from the root are as the drain was told */
    bool every_owner; /* also of known frames */
    bool settled;     /* walked in hooks only, where no frame is half pushed */
} pw_walk;

size_t pw_walk_bytes(uint32_t room);
void pw_walk_place(pw_walk *w, void *memory, uint32_t room);

/* Makes `w` walk this Thread's stack, where own walks are in use. */
void pw_walk_aim(pw_walk *w, VALUE thread);

/* Walks the calling thread's stack. How many control frames next to the root are as they were. async-signal-safe */
uint32_t pw_walk_stack(pw_walk *w);

/* Walks the stack of another thread, which goes on meanwhile. Only where that is proven (pw_outside_refusal), and
 * while no garbage is collected. holds reader lock */
typedef enum {
    PW_SEEN,
    PW_TORN,    /* it went too far to say what it was: try again. *same is right, and what was seen is no stack */
    PW_NOTHING  /* it has no stack: it has not begun, or has ended */
} pw_outcome;
pw_outcome pw_walk_outside(pw_walk *w, uint32_t *same);
/* In the thread itself: if it is not in a fiber now, its stack may be read in place. needs GVL */
void pw_walk_find_root(pw_walk *w);

/* In hooks, where no frame is half pushed; `context` is an execution context. All but pw_walk_own: needs GVL */
bool pw_walk_own(void); /* whether any of these may be called */
const void *pw_walk_context_of(VALUE thread);
uint32_t pw_walk_context(pw_walk *w, const void *context); /* as pw_walk_stack */
/* The control frame, from `from` on, of the innermost code written in Ruby; NULL: there is none. */
const VALUE *pw_walk_innermost(const void *context, const VALUE *from);
/* The innermost frame of Ruby code in the calling thread, among the first `most` control frames, whose iseq is
 * wanted. needs GVL, and no hook may be running. */
bool pw_walk_find(bool (*wanted)(VALUE iseq, void *data), void *data, uint32_t most, pw_frame_seen *found);
bool pw_walk_look(const void *context, const VALUE *control_frame, pw_frame_seen *seen);

static inline uint32_t
pw_walk_listed(const pw_walk *w, uint32_t control_frames)
{
    return control_frames ? w->seen[control_frames - 1].listed : 0;
}

/* Does this method entry belong to a method written in Ruby? It must be valid. */
bool pw_method_is_ruby(VALUE method_entry);

/* Is it an iseq, rather than a method entry? It must be valid. */
bool pw_frame_is_iseq(VALUE frame);

/* Are own walks in use? Only then may what follows be called: for an execution context (rb_execution_context_t) of
 * a thread that has the GVL, between two instructions. */
bool pw_walk_in_use(void);
const char *pw_walk_refusal(void); /* NULL, or why not */
/* The method entry that a Ruby frame runs for, or 0. */
VALUE pw_walk_owner(const void *ec, const VALUE *cfp);
/* Its frames from the root to the one at `leaf`: Ruby frames as iseqs, C functions as method entries. */
void pw_walk_frames(const void *ec, const VALUE *leaf,
                    void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data);

/* ---- for the files of vm/ ---- */

struct pw_vm_stack;
/* Walks the frames and returns how many control frames next to the root are as they were. async-signal-safe */
uint32_t pw_walk_frames_of(pw_walk *w, const struct pw_vm_stack *s);

/* The C function that code at `pc` calls, or called shortly before; 0: not known. holds reader lock */
VALUE pw_c_function_called(VALUE iseq, VALUE pc);

/* What the self-tests have shown (walk_tests.c). NULL: own walks are right. */
void pw_walk_set_refusal(const char *why);
/* Looks up what the walk needs of Ruby. False: this Ruby hides it. */
bool pw_walk_has_lines(void);
/* Call sites name C functions as expected. */
void pw_walk_trust_sites(void);

#endif

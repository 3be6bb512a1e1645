/* A VM stack as the walks read it: in place, or as a copy of another thread's stack. For the files of vm/ only. */
#ifndef PITWALL_VM_STACK_H
#define PITWALL_VM_STACK_H

#include "vm/stack_walk.h"
#include "vm/vm_layout.h"

/* Reads a word once. A second look may find another value. */
#define PW_LOAD(word) (*(const volatile VALUE *)&(word))

/* Frames next to the leaf. They are copied first, together with what they point to. */
enum { PW_EARLY_FRAMES = 8 };

/* What a reader from outside has copied while the thread ran on. */
typedef struct {
    const VALUE *context;
    bool in_place;          /* the stack cannot go away: words that are not copied may be read in place */
    size_t frame_words;
    VALUE *frames;          /* control frames, leaf first */
    const VALUE *env_of[PW_EARLY_FRAMES];
    VALUE env[PW_EARLY_FRAMES][3];
    bool sure[PW_EARLY_FRAMES]; /* env is the frame's: frame and caller were the same before and after the copy */
    const VALUE *from, *to; /* the values that were copied */
    VALUE *values;
} pw_stack_copy;

typedef struct {
    const VALUE *base, *end, *cfp;
    const pw_stack_copy *copy; /* NULL: the calling thread's own stack */
} pw_vm_stack;

/* A thread's (rb_thread_t) execution context. */
static inline const VALUE *
pw_context_of(const void *thread)
{
    return *(const VALUE *const volatile *)((const uint8_t *)thread + PW_THREAD_EC);
}

/* From the first words of an execution context. False: these are no stack. */
bool pw_vm_stack_of(const VALUE *ec, pw_vm_stack *s);

/* Walks the frames and returns how many control frames next to the root are as they were. async-signal-safe */
uint32_t pw_walk_frames_of(pw_walk *w, const pw_vm_stack *s);

/* The C function that code at `pc` calls, or called shortly before; 0: not known. holds reader lock */
VALUE pw_c_function_called(VALUE iseq, VALUE pc);

/* What the self-tests have shown (walk_tests.c). NULL: own walks are right. */
void pw_walk_set_refusal(const char *why);
/* Looks up what the walk needs of Ruby. False: this Ruby hides it. */
bool pw_walk_has_lines(void);
/* Call sites name C functions as expected. */
void pw_walk_trust_sites(void);

#endif

/* A VM stack as the walks read it: in place, or as a copy of another thread's stack. For the files of vm/ only. */
#ifndef PITWALL_VM_STACK_H
#define PITWALL_VM_STACK_H

#include "vm/vm_layout.h"

/* Reads a word once. A second look may find another value. */
#define PW_LOAD(word) (*(const volatile VALUE *)&(word))

/* Frames next to the leaf. They are copied first, together with what they point to. */
enum { PW_EARLY_FRAMES = 8 };

/* What a reader from outside has copied while the thread ran on. */
typedef struct {
    const VALUE *context;
    bool in_place;          /* the stack cannot go away, so words that are not copied may be read in place */
    size_t frame_words;
    VALUE *frames;          /* control frames, leaf first */
    const VALUE *env_of[PW_EARLY_FRAMES];
    VALUE env[PW_EARLY_FRAMES][3];
    bool sure[PW_EARLY_FRAMES]; /* env is the frame's own: frame and caller were the same before and after the copy */
    const VALUE *from, *to; /* the values that were copied */
    VALUE *values;
} pw_stack_copy;

typedef struct pw_vm_stack {
    const VALUE *base, *end, *cfp;
    const pw_stack_copy *copy; /* NULL: the calling thread's own stack */
} pw_vm_stack;

/* A thread's (rb_thread_t) execution context. */
static inline const VALUE *
pw_context_of(const void *thread)
{
    return *(const VALUE *const volatile *)((const uint8_t *)thread + PW_THREAD_EC);
}

static inline bool
pw_pointer_like(VALUE word)
{
    return word >= 4096 && word < (VALUE)1 << 56 && word % sizeof(VALUE) == 0;
}

/* Reads the bounds of a stack from the first words of an execution context. False: the words describe no stack. */
static inline bool
pw_vm_stack_of(const VALUE *ec, pw_vm_stack *s)
{
    VALUE base = ec[PW_EC_STACK], words = ec[PW_EC_STACK_WORDS], cfp = ec[PW_EC_CFP];
    if (!pw_pointer_like(base) || !pw_pointer_like(cfp) || words > (VALUE)1 << 32) return false;
    VALUE end = base + words * sizeof(VALUE);
    if (cfp < base || cfp > end - PW_ROOT_FRAMES * PW_CFP_BYTES || (end - cfp) % PW_CFP_BYTES != 0) return false;
    *s = (pw_vm_stack){(const VALUE *)base, (const VALUE *)end, (const VALUE *)cfp, NULL};
    return true;
}

#endif

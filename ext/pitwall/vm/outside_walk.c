/* Copies the stack of another thread while that thread runs, and walks the copy. */
#include "vm/stack_walk.h"

#if PW_LAYOUT_RUBY

#include "vm/known_frames.h"
#include "vm/peek.h"
#include "vm/vm_stack.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* words of a fiber's values that are copied at once; other words are copied one by one */
enum { MOST_VALUES = 1 << 15 };
static pw_stack_copy taken;

static bool
copies_have_room(uint32_t frames)
{
    static size_t room;
    if (room < frames) {
        free(taken.frames);
        free(taken.values);
        room = 0;
        taken.frames = malloc(frames * PW_CFP_BYTES);
        taken.values = malloc(MOST_VALUES * sizeof(VALUE));
        if (!taken.frames || !taken.values) return false;
        room = frames;
    }
    return true;
}

/* The stack's depth and the top frame are in memory that the thread's core writes all the time. Each read takes a
 * cache line from that core. Two reads, one after the other, are 0.2 us apart, and short calls begin and end within
 * that time. Reads of addresses that are known beforehand happen at once. So the frames around the top of the
 * previous look are read together with the address of the current top. (Reading the address of the top first would
 * bias the samples. A core from which that cache line was taken stalls at its next call or return. Code that calls
 * often would then be seen too often.) */
enum { NEAR = 6 }; /* frames on each side of the previous top */
typedef struct {
    const VALUE *from, *to;
    VALUE words[2 * NEAR * PW_CFP_WORDS];
} frames_near;

static void
read_together(const pw_walk *w, VALUE head[PW_EC_WORDS], frames_near *near)
{
    const VALUE *context = taken.context, *from = NULL, *to = NULL;
    /* the stack is gone when the thread has ended; the processor does not wait for this word before the next reads */
    head[PW_EC_STACK] = PW_LOAD(context[PW_EC_STACK]);
    if (w->top && head[PW_EC_STACK] == (VALUE)w->base) {
        from = w->top - w->base > NEAR * PW_CFP_WORDS ? w->top - NEAR * PW_CFP_WORDS : w->base;
        to = w->end - w->top > NEAR * PW_CFP_WORDS ? w->top + NEAR * PW_CFP_WORDS : w->end;
    }
    near->from = from, near->to = to;
    size_t n = (size_t)(to - from);
    head[PW_EC_CFP] = PW_LOAD(context[PW_EC_CFP]);
    for (size_t i = 0; i < n; i++) near->words[i] = PW_LOAD(from[i]);
    head[PW_EC_STACK_WORDS] = PW_LOAD(context[PW_EC_STACK_WORDS]);
    atomic_thread_fence(memory_order_acquire);
}

/* Copies the leaf and its caller, then the leaf's environment, then the next frame, and so on. The order matters for
 * a C function that returns meanwhile: its caller soon overwrites the function's environment. */
static void
copy_in_place(const pw_vm_stack *s, const frames_near *near, bool every_env)
{
    size_t early = taken.frame_words < PW_EARLY_FRAMES * PW_CFP_WORDS ? taken.frame_words : PW_EARLY_FRAMES * PW_CFP_WORDS;
    size_t copied = 0;
    if (near->from && s->cfp >= near->from) {
        for (; copied < early && s->cfp + copied < near->to; copied++) {
            taken.frames[copied] = near->words[s->cfp + copied - near->from];
        }
    }
    for (size_t n = 0; n < early / PW_CFP_WORDS; n++) {
        const VALUE *cfp = s->cfp + n * PW_CFP_WORDS;
        const VALUE *copy = taken.frames + n * PW_CFP_WORDS;
        size_t to = (n + 2) * PW_CFP_WORDS < early ? (n + 2) * PW_CFP_WORDS : early;
        for (; copied < to; copied++) taken.frames[copied] = PW_LOAD(s->cfp[copied]);
        VALUE iseq = copy[PW_CFP_ISEQ];
        /* the thread's core has to get back each cache line that is read here */
        if (!every_env && iseq && pw_known(iseq)) continue;
        const VALUE *ep = (const VALUE *)copy[PW_CFP_EP];
        if (!pw_pointer_like((VALUE)ep) || ep < s->base + 2 || ep >= s->end) continue;
        for (int i = 0; i < 3; i++) taken.env[n][i] = PW_LOAD(ep[i - 2]);
        taken.env_of[n] = ep;
        atomic_thread_fence(memory_order_acquire);
        bool there = PW_LOAD(taken.context[PW_EC_CFP]) <= (VALUE)cfp;
        taken.sure[n] = there && PW_LOAD(cfp[PW_CFP_ISEQ]) == iseq && PW_LOAD(cfp[PW_CFP_EP]) == (VALUE)ep;
        if (!iseq && copied > (n + 1) * PW_CFP_WORDS) {
            taken.sure[n] &= PW_LOAD(cfp[PW_CFP_WORDS + PW_CFP_PC]) == copy[PW_CFP_WORDS + PW_CFP_PC];
        }
    }
    memcpy(taken.frames + early, s->cfp + early, (taken.frame_words - early) * sizeof(VALUE));
}

static bool
copy_by_kernel(const pw_vm_stack *s)
{
    if (!pw_peek(s->cfp, taken.frames, taken.frame_words * sizeof(VALUE))) return false;
    const VALUE *to = (const VALUE *)taken.frames[PW_CFP_SP];
    /* the environment of the root frame, if the environment is not in the heap */
    const VALUE *from = (const VALUE *)taken.frames[taken.frame_words - PW_CFP_WORDS + PW_CFP_EP] - 2;
    if (to < s->base || to > s->cfp) to = s->cfp;
    if (from < s->base || from > to) from = s->base;
    if (to - from > MOST_VALUES) from = to - MOST_VALUES;
    if (!pw_peek(from, taken.values, (size_t)(to - from) * sizeof(VALUE))) return false;
    taken.from = from, taken.to = to;
    VALUE cfp, again[2 * PW_CFP_WORDS];
    size_t bytes = taken.frame_words < 2 * PW_CFP_WORDS ? PW_CFP_BYTES : sizeof again;
    const pw_piece pieces[2] = {{taken.context + PW_EC_CFP, &cfp, sizeof cfp}, {s->cfp, again, bytes}};
    if (!pw_peek_both(pieces)) return false;
    taken.sure[0] = cfp <= (VALUE)s->cfp && memcmp(again, taken.frames, bytes) == 0;
    return true;
}

/* Whether the thread is still on that stack, and whether the first frame below the early frames is unchanged. If so,
 * the thread did not return to that frame during the look, so all frames from there to the root are as they were.
 * The early frames were copied within some dozens of nanoseconds. A look is good even if the thread moved on above
 * that frame. Refusing such looks would favour the code that moves least. */
static bool
holds_still(const void *thread, const pw_vm_stack *s)
{
    if (pw_context_of(thread) != taken.context) return false;
    enum { N = PW_CFP_PC > PW_CFP_ISEQ ? PW_CFP_PC + 1 : PW_CFP_ISEQ + 1 };
    size_t at = (size_t)PW_EARLY_FRAMES * PW_CFP_WORDS;
    VALUE base = (VALUE)s->base, words[N];
    bool whole = taken.frame_words <= at;
    if (taken.in_place) { /* this context keeps its stack, so the stack may be read in place */
        for (size_t i = 0; i < N && !whole; i++) words[i] = PW_LOAD(s->cfp[at + i]);
    }
    else {
        const pw_piece pieces[2] = {{taken.context + PW_EC_STACK, &base, sizeof base},
                                    {s->cfp + at, words, whole ? 0 : sizeof words}};
        if (!pw_peek_both(pieces)) return false;
    }
    if (base != (VALUE)s->base) return false;
    return whole ||
           (words[PW_CFP_PC] == taken.frames[at + PW_CFP_PC] && words[PW_CFP_ISEQ] == taken.frames[at + PW_CFP_ISEQ]);
}

pw_outcome
pw_walk_outside(pw_walk *w, uint32_t *same)
{
    pw_vm_stack s;
    VALUE head[PW_EC_WORDS];
    frames_near near = {0};
    *same = w->depth;
    if (!copies_have_room(w->room)) return PW_NOTHING;
    const VALUE *context = pw_context_of(w->thread);
    if (!context) return w->depth = 0, PW_NOTHING;
    taken.context = context;
    taken.in_place = context == w->root;
    for (int i = 0; i < PW_EARLY_FRAMES; i++) taken.env_of[i] = NULL;
    taken.from = taken.to = NULL;
    if (taken.in_place) read_together(w, head, &near);
    else if (!pw_peek(context, head, sizeof head)) return PW_TORN;
    if (!head[PW_EC_STACK]) return w->depth = 0, PW_NOTHING;
    if (!pw_vm_stack_of(head, &s)) return PW_TORN;
    if (taken.in_place) w->base = s.base, w->end = s.end, w->top = s.cfp;

    size_t count = (size_t)(s.end - s.cfp), most = (size_t)w->room * PW_CFP_WORDS;
    taken.frame_words = count < most ? count : most;
    if (taken.frame_words && taken.in_place) copy_in_place(&s, &near, w->every_owner);
    else if (taken.frame_words && !copy_by_kernel(&s)) return PW_TORN;
    s.copy = &taken;
    *same = pw_walk_frames_of(w, &s);
    return holds_still(w->thread, &s) ? PW_SEEN : PW_TORN;
}

void
pw_walk_find_root(pw_walk *w)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    if (!w->thread || w->root || pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0 && here - (uintptr_t)lowest < size) {
        w->root = pw_context_of(w->thread);
    }
    pthread_attr_destroy(&attributes);
}

#else

void pw_walk_find_root(pw_walk *w) {}
pw_outcome pw_walk_outside(pw_walk *w, uint32_t *same) { return *same = w->depth = 0, PW_NOTHING; }

#endif

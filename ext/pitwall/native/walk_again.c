#include "native/walk_again.h"

#if PW_UNWINDS

static bool
is_as_it_was(pw_walk *w, const pw_native_frame *f, const pw_native_frame *caller)
{
    uintptr_t word;
    if (f->found == PW_FOUND_OTHERWISE || f->found == PW_FOUND_NONE) return false;
    if (caller->sp != f->cfa) return false; /* a frame between them was left out */
    if (!pw_word(&w->words, f->cfa + (uintptr_t)((intptr_t)f->return_at * 8), &word)) return false;
    if (pw_return_address(word) != caller->pc + 1) return false;
    if (f->found == PW_FOUND_BY_SP || !f->fp_below) return true;
    uintptr_t at = f->cfa - 8 * (uintptr_t)f->fp_below;
    return at >= w->r[PW_SP] && pw_word(&w->words, at, &word) && word == f->fp;
}

uint32_t
pw_still_there(pw_walk *w, const pw_last_stack *last)
{
    uintptr_t sp = w->r[PW_SP];
    if (!last->count || last->generation != w->map->generation) return 0;
    const pw_native_frame *root = &last->frames[last->count - 1];
    if (root->found != PW_FOUND_NONE || sp < pw_own_stack.from || root->sp <= sp || root->sp >= pw_own_stack.to) return 0;
    uint32_t n = 1;
    for (; n < last->count; n++) {
        const pw_native_frame *f = root - n;
        if (f->sp < sp || f->cfa > root->sp || !is_as_it_was(w, f, f + 1)) break;
    }
    return n;
}

#else
typedef int pw_no_walk_again;
#endif

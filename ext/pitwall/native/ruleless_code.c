#include "native/ruleless_code.h"

#if PW_UNWINDS

enum { CHAIN_BYTES = 1 << 16, SCANNED_WORDS = 64, LOOKED_AHEAD = 3 };

/* Whether the callers from these registers on can be followed. Code without rules may come again. */
static bool
leads_on(const pw_walk *w)
{
    pw_walk ahead = *w;
    pw_native_frame frame;
    pw_walk_result result;
    for (int i = 0; i < LOOKED_AHEAD; i++) {
        if (!pw_walk_by_rule(&ahead, &frame, &result)) return i > 0;
        if (result != PW_WALK_ON) return result == PW_WALK_ENDED;
    }
    return true;
}

/* By the frame pointer: the caller's frame pointer is where it points to, the return address behind it. Compiled code
 * returns to a function with rules, or to other compiled code. */
static bool
by_frame_pointer(pw_walk *w, const pw_native_frame *frame)
{
    uintptr_t fp = w->r[PW_FP], caller_fp, back;
    if ((fp & 7) || fp < w->r[PW_SP] || fp - w->r[PW_SP] > CHAIN_BYTES) return false;
    if (!pw_word(&w->words, fp, &caller_fp) || !pw_word(&w->words, fp + 8, &back)) return false;
    back = pw_return_address(back);
    pw_walk caller = *w;
    caller.r[PW_FP] = caller_fp;
    caller.r[PW_PC] = back;
    caller.r[PW_SP] = fp + 16;
    caller.interrupted = false;
    if (pw_code_at(w->map, back - 1)) {
        if (!pw_is_call_site(w->map, back) || !leads_on(&caller)) return false;
    }
    else if (frame->kind != PW_NATIVE_COMPILED || caller_fp <= fp || caller_fp - fp > CHAIN_BYTES) return false;
    *w = caller;
    return true;
}

/* By looking for a return address, the nearest that leads on. */
static bool
by_search(pw_walk *w)
{
    uintptr_t sp = w->r[PW_SP], back;
    for (uintptr_t at = sp; at < sp + 8 * SCANNED_WORDS; at += 8) {
        if (!pw_word(&w->words, at, &back)) return false;
        back = pw_return_address(back);
        if (!pw_is_call_site(w->map, back)) continue;
        pw_walk caller = *w;
        caller.r[PW_PC] = back;
        caller.r[PW_SP] = at + 8;
        caller.interrupted = false;
        if (!leads_on(&caller)) continue;
        *w = caller;
        return true;
    }
    return false;
}

pw_walk_result
pw_walk_without_rule(pw_walk *w, pw_native_frame *frame)
{
    bool stays = w->code && w->code->stays;
    /* The C library calls a thread's first function from code without a rule, with no frame pointer. */
    if (stays && !w->interrupted && w->r[PW_FP] == 0) return PW_WALK_ENDED;
    if (!by_frame_pointer(w, frame) && !by_search(w)) return PW_WALK_LOST;
    frame->cfa = w->r[PW_SP];
    return PW_WALK_ON;
}

#else
typedef int pw_no_ruleless_code;
#endif

#include "native/ruleless_code.h"

#if PW_UNWINDS

#include "native/interpreter.h"

enum { CHAIN_BYTES = 1 << 16, SEARCHED_WORDS = 64, LOOKED_AHEAD = 3 };

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

/* What the caller must look like. C code calls compiled code by its address. */
static pw_call_kind
least_call(const pw_native_frame *frame)
{
    return frame->kind == PW_NATIVE_COMPILED ? PW_CALL_OF_ADDRESS : PW_CALL_OF_FUNCTION;
}

/* By the frame pointer: the caller's frame pointer is where it points to, the return address behind it. ZJIT's code
 * does so, and one such function calls another. YJIT's does not: there the frame pointer is still that of the C function
 * which called it, or of one of that function's callers. */
static bool
by_frame_pointer(pw_walk *w, const pw_native_frame *frame)
{
    uintptr_t fp = w->r[PW_FP], caller_fp, back, start;
    if ((fp & 7) || fp < w->r[PW_SP] || fp - w->r[PW_SP] > CHAIN_BYTES) return false;
    if (!pw_word(&w->words, fp, &caller_fp) || !pw_word(&w->words, fp + 8, &back)) return false;
    back = pw_return_address(back);
    pw_walk caller = *w;
    caller.r[PW_FP] = caller_fp;
    caller.r[PW_PC] = back;
    caller.r[PW_SP] = fp + 16;
    caller.interrupted = false;
    if (pw_code_at(w->map, back - 1)) {
        if (pw_call_returning_to(w->map, back, &start) < least_call(frame) || !leads_on(&caller)) return false;
        if (frame->kind == PW_NATIVE_COMPILED && !pw_interpreter_enters_code(start)) return false;
    }
    else if (frame->kind != PW_NATIVE_COMPILED || caller_fp <= fp || caller_fp - fp > CHAIN_BYTES) return false;
    *w = caller;
    return true;
}

/* By looking for a return address, the nearest that leads on. YJIT's code pushes three registers when it is entered,
 * and few more around calls of C functions. */
static bool
by_search(pw_walk *w, const pw_native_frame *frame)
{
    uintptr_t sp = w->r[PW_SP], back, start;
    for (uintptr_t at = sp; at < sp + 8 * SEARCHED_WORDS; at += 8) {
        if (!pw_word(&w->words, at, &back)) return false;
        back = pw_return_address(back);
        if (pw_call_returning_to(w->map, back, &start) < least_call(frame)) continue;
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

/* Assembler of libraries, such as that of GMP, has no frame pointer. */
pw_walk_result
pw_walk_without_rule(pw_walk *w, pw_native_frame *frame)
{
    /* The C library calls a thread's first function from code without a rule, with no frame pointer. */
    if (w->code && w->code->stays && !w->interrupted && w->r[PW_FP] == 0) return PW_WALK_ENDED;
    bool found = frame->kind == PW_NATIVE_COMPILED ? by_frame_pointer(w, frame) || by_search(w, frame)
                                                   : by_search(w, frame) || by_frame_pointer(w, frame);
    if (!found) return PW_WALK_LOST;
    frame->cfa = w->r[PW_SP];
    return PW_WALK_ON;
}

#else
typedef int pw_no_ruleless_code;
#endif

#include "native/native_walk.h"

#if PW_UNWINDS

#include "native/ruleless_code.h"

pw_walk_result
pw_walk_step(pw_walk *w, pw_native_frame *frame)
{
    pw_walk_result result;
    return pw_walk_by_rule(w, frame, &result) ? result : pw_walk_without_rule(w, frame);
}

uint32_t
pw_walk_all(pw_walk *w, pw_native_frame *frames, uint32_t room, const pw_last_stack *last, uint32_t *kept,
            pw_unwind_end *end)
{
    uint32_t there = pw_still_there(w, last);
    const pw_native_frame *after = last->frames + last->count, *next = after - there;
    *kept = 0;
    for (uint32_t n = 0; n < room;) {
        while (next < after && next->sp < w->r[PW_SP]) next++;
        if (next < after && pw_walk_is_at(w, next)) {
            *kept = (uint32_t)(after - next);
            *end = PW_UNWOUND;
            return n;
        }
        pw_walk_result result = pw_walk_step(w, &frames[n]);
        if (n && frames[n].kind == PW_NATIVE_COMPILED && frames[n - 1].kind == PW_NATIVE_COMPILED) {
            frames[n - 1].cfa = frames[n].cfa;
        }
        else n++;
        if (result == PW_WALK_ON) continue;
        *end = result == PW_WALK_ENDED ? PW_UNWOUND : PW_UNWIND_LOST;
        return n;
    }
    *end = PW_UNWIND_FULL;
    return room;
}

#else
typedef int pw_no_walk;
#endif

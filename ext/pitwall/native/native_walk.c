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
pw_walk_all(pw_walk *w, pw_native_frame *frames, uint32_t room, pw_unwind_end *end)
{
    for (uint32_t n = 0; n < room;) {
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

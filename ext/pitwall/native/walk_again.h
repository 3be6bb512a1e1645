/* What of a thread's last native stack is still so. Next to the root the frames seldom change between two samples. They
 * are not walked again if the words that the walk depended on are as they were.
 *
 * Where a frame's caller is depends on its pc, stack pointer and frame pointer, on the return address in memory, and on
 * the word that the frame pointer was read from. So if a walk comes to a frame of the last stack with these registers,
 * and the words of that frame and of all its callers are unchanged, then the walk would find the same callers. */
#ifndef PITWALL_WALK_AGAIN_H
#define PITWALL_WALK_AGAIN_H

#include "native/rule_walk.h"

#if PW_UNWINDS
/* How many frames next to the root depend on words that are as they were. Looks at the own stack only, from the walk's
 * stack pointer on. async-signal-safe */
uint32_t pw_still_there(pw_walk *w, const pw_last_stack *last);

/* Whether the walk has come to the frame at that place. async-signal-safe */
static inline bool
pw_walk_is_at(const pw_walk *w, const pw_native_frame *frame)
{
    return !w->interrupted && frame->sp == w->r[PW_SP] && frame->pc == w->r[PW_PC] - 1 && frame->fp == w->r[PW_FP];
}
#endif

#endif

/* Walks a native stack from the leaf to the function that the thread began with. */
#ifndef PITWALL_NATIVE_WALK_H
#define PITWALL_NATIVE_WALK_H

#include "native/walk_again.h"

#if PW_UNWINDS
/* Describes the frame of the walk's registers, and sets them to the caller's. async-signal-safe */
pw_walk_result pw_walk_step(pw_walk *w, pw_native_frame *frame);

/* Walks until it comes to one of the frames of `last` that need not be walked again. Returns how many frames were walked;
 * *kept: how many frames next to the root of `last` follow them. async-signal-safe */
uint32_t pw_walk_all(pw_walk *w, pw_native_frame *frames, uint32_t room, const pw_last_stack *last, uint32_t *kept,
                     pw_unwind_end *end);
#endif

#endif

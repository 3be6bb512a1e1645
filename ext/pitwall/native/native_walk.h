/* Walks a native stack from the leaf to the function that the thread began with. */
#ifndef PITWALL_NATIVE_WALK_H
#define PITWALL_NATIVE_WALK_H

#include "native/rule_walk.h"

#if PW_UNWINDS
/* Describes the frame of the walk's registers, and sets them to the caller's. async-signal-safe */
pw_walk_result pw_walk_step(pw_walk *w, pw_native_frame *frame);

/* async-signal-safe */
uint32_t pw_walk_all(pw_walk *w, pw_native_frame *frames, uint32_t room, pw_unwind_end *end);
#endif

#endif

/* Finds the caller of code without rules: what YJIT and ZJIT made, other compilers at run time, some assembler. */
#ifndef PITWALL_RULELESS_CODE_H
#define PITWALL_RULELESS_CODE_H

#include "native/rule_walk.h"

#if PW_UNWINDS
/* Completes the frame, which pw_walk_by_rule has begun, and sets the registers to the caller's.
 * async-signal-safe */
pw_walk_result pw_walk_without_rule(pw_walk *w, pw_native_frame *frame);
#endif

#endif

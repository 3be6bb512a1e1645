/* What each control frame of a walk is to the native stack. The two stacks of a thread are joined by it.
 *
 * C code that runs Ruby code pushes a control frame with the flag FINISH, and calls the interpreter's loop
 * (vm_exec_core). The loop runs that frame's code, and all Ruby code that is called from there, until the frame with
 * the flag returns. So one native frame of the loop stands for a run of control frames, and each run begins with a
 * frame that has the flag. */
#ifndef PITWALL_FRAME_ROLES_H
#define PITWALL_FRAME_ROLES_H

#include "vm/stack_walk.h"

enum {
    PW_ROLE_NONE,  /* not listed, or the dummy at the root on 3.1 */
    PW_ROLE_CODE,  /* Ruby code that Ruby code called */
    PW_ROLE_FIRST, /* Ruby code that C code called: a run begins */
    PW_ROLE_C      /* a C function */
};

typedef struct {
    uintptr_t function; /* of PW_ROLE_C: its address; else 0 */
    uint8_t role;
} pw_frame_role;

/* Finds the roles of the control frames that the calling thread's walk has just found, root first, from number `from` on.
 * False: the stack does not fit the walk. Then all frames are taken for Ruby code that Ruby code called.
 * async-signal-safe */
bool pw_frame_roles(const pw_walk *w, uint32_t from, pw_frame_role *roles);

#endif

/* From a frame of a native stack to its caller, by the rules of a code map. */
#ifndef PITWALL_RULE_WALK_H
#define PITWALL_RULE_WALK_H

#include "native/code_map.h"
#include "native/native_frame.h"

#if PW_UNWINDS
# include "native/stack_words.h"

typedef struct {
    const pw_code_map *map;
    const pw_code *code;   /* of the last frame; NULL: none yet */
    uintptr_t r[PW_REGISTERS];
    bool interrupted;      /* pc is the next instruction; else it is a return address */
    uintptr_t fp_at;       /* where the frame pointer was read from; 0: from no memory */
    pw_stack_words words;
} pw_walk;

typedef enum { PW_WALK_ON, PW_WALK_ENDED, PW_WALK_LOST } pw_walk_result;

/* Describes the frame of the walk's registers, and sets them to the caller's. False: no rule is known, and the
 * registers are as they were. async-signal-safe */
bool pw_walk_by_rule(pw_walk *w, pw_native_frame *frame, pw_walk_result *result);

/* What kind of call may return to that address. Of objects that could be unloaded, instructions are not read: any call
 * of theirs may be of an address. `start`: of the function that has the call. async-signal-safe */
pw_call_kind pw_call_returning_to(const pw_code_map *map, uintptr_t address, uintptr_t *start);
#endif

#endif

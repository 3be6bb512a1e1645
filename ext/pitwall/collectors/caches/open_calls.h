/* Watched calls that have not returned. A hook such as method_added, called straight from a watched call, tells the
 * call that the change has been noted. A call is identified by its execution context and its control frame, so it may
 * move to another native thread. */
#ifndef PITWALL_OPEN_CALLS_H
#define PITWALL_OPEN_CALLS_H

#include "collectors/caches/vm_counters.h"
#include "vm/vm_layout.h"
#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct { const VALUE *ec, *cfp; } pw_call_place;

/* The calling thread's top control frame. False: not known. needs GVL */
bool pw_call_here(pw_call_place *place);

static inline pw_call_place
pw_caller_of(pw_call_place place)
{
    return (pw_call_place){place.ec, place.cfp + PW_CFP_WORDS};
}

/* Returns the call's number for pw_call_close; -1: no room. If there is no room, the oldest call is given up: a fiber
 * that was left for good never closes its calls. */
int pw_call_open(pw_call_place place);
/* Returns how many changes were noted for the call, and adds to `increase` what pw_call_adds has added. */
uint32_t pw_call_close(int number, pw_call_place place, uint64_t increase[PW_VM_COUNTERS]);
/* Counters have increased within the call at this place, before the code that it calls. False: no call is open
 * there. */
bool pw_call_adds(pw_call_place place, const uint64_t increase[PW_VM_COUNTERS]);
/* Is a watched call open at this place? */
bool pw_call_is_open(pw_call_place place);
/* A change within the call at this place was noted. */
void pw_call_noted(pw_call_place place);
void pw_calls_forget(void);

/* What the code at a control frame is doing. name: the called C method, 0 for Ruby code. pc: of Ruby code. */
typedef struct { ID name; const VALUE *pc; VALUE self; } pw_call_kind;
pw_call_kind pw_call_kind_at(pw_call_place place);

#endif

/* Counting new objects in bursts: the hook is there for a small part of the time. */
#ifndef PITWALL_BURSTS_H
#define PITWALL_BURSTS_H

#include "tools/clock.h"
#include "tools/hidden.h"
#include "vm/raw_hook.h"

/* A burst is a stretch of the program's time: objects before `from` and after `until` are not in it, and what looking
 * takes puts off its end: else it would see the fewer objects of a place the faster that allocates. */
typedef struct { int64_t from, until, looked; } pw_burst_state; /* until 0: there is none */
extern PW_HIDDEN pw_burst_state pw_burst;
void pw_burst_end(void);

static inline bool
pw_in_burst(void)
{
    if (pw_burst.until == 0) return false;
    int64_t now = pw_burst.looked = pw_now_ns();
    if (now < pw_burst.from) return false;
    if (now <= pw_burst.until) return true;
    pw_burst_end();
    return false;
}

/* An object was looked at, as long as pw_in_burst said so. */
static inline void pw_burst_lengthen(void) { pw_burst.until += pw_now_ns() - pw_burst.looked; }

/* False: there is no thread, or no room for a job. needs GVL */
bool pw_bursts_start(pw_raw_hook hook);
void pw_bursts_stop(bool in_child);
/* Pitwall's own objects are counted, not sampled. */
void pw_bursts_own_begin(void);
void pw_bursts_own_end(void);

#endif

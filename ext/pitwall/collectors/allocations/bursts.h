/* Counts new objects in bursts: the hook is installed for a small part of the time. */
#ifndef PITWALL_BURSTS_H
#define PITWALL_BURSTS_H

#include "tools/clock.h"
#include "tools/hidden.h"
#include "vm/raw_hook.h"

/* A burst is an interval of the program's own time. Objects before `from` and after `until` are not in the burst.
 * The hook's own time extends `until`. Otherwise a burst would see fewer objects of a place that allocates faster.
 * All times in ns; until 0: no burst; looked: the time of the last check. */
typedef struct { int64_t from, until, looked; } pw_burst_state;
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

/* Call after the hook has handled an object for which pw_in_burst returned true. */
static inline void pw_burst_lengthen(void) { pw_burst.until += pw_now_ns() - pw_burst.looked; }

/* False: the thread could not be started, or Ruby has no room for a postponed job. needs GVL */
bool pw_bursts_start(pw_raw_hook hook);
void pw_bursts_stop(bool in_child);
/* Pitwall's own objects are counted, not sampled. */
void pw_bursts_own_begin(void);
void pw_bursts_own_end(void);

#endif

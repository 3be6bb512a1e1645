/* Reads the stacks of waiting threads from outside, because a wait may never end. Only where the waiting threads are
 * known. */
#ifndef PITWALL_WAITING_H
#define PITWALL_WAITING_H

#include <stdbool.h>
#include <stdint.h>

/* Finds out whether stacks of waiting threads may be read from outside. Called before the first thread is registered.
 * needs GVL */
void pw_waiting_prepare(void);
bool pw_waiting_looks(void);
/* Takes the stacks of threads that have waited for at least `for_ns`, once a wait. holds session lock */
void pw_look_at_waiting(int64_t for_ns);

#endif

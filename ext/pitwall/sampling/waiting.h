/* Looking from outside at threads that wait: their wait may never end. Where it is known who waits. */
#ifndef PITWALL_WAITING_H
#define PITWALL_WAITING_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first thread is seen: learns whether waiting threads' stacks may be read from outside. needs GVL */
void pw_waiting_prepare(void);
bool pw_waiting_looks(void);
/* Takes the stacks of threads that have waited for so long, once a wait. holds session lock */
void pw_look_at_waiting(int64_t for_ns);

#endif

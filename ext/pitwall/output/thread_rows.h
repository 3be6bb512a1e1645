/* Rows of threads: THRD of doc/record-format.md. holds session lock */
#ifndef PITWALL_THREAD_ROWS_H
#define PITWALL_THREAD_ROWS_H

#include "session/threads.h"

void pw_thread_rows_init(void);
/* The thread's END record was taken: it leaves the session's list. How many have since the last flush. */
uint32_t pw_thread_rows_end(pw_thread *t);
/* `last`: frees all that have ended. */
void pw_thread_rows_write(bool last);

#endif

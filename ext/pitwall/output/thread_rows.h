/* Rows of threads: THRD of doc/record-format.md. holds session lock */
#ifndef PITWALL_THREAD_ROWS_H
#define PITWALL_THREAD_ROWS_H

#include "session/threads.h"

void pw_thread_rows_init(void);
/* Removes a thread whose END record was taken from the session's list. Returns the number of threads removed since the
 * last flush. */
uint32_t pw_thread_rows_end(pw_thread *t);
/* `last`: frees all ended threads. */
void pw_thread_rows_write(bool last);

#endif

/* Pitwall's own native threads. No signal of the process can be delivered to them. */
#ifndef PITWALL_QUIET_THREAD_H
#define PITWALL_QUIET_THREAD_H

#include <pthread.h>

/* Returns 0 or an errno. */
int pw_start_quiet_thread(pthread_t *thread, void *(*body)(void *));

/* Each such thread calls this function first. The C library reserves 64 MB of addresses at a thread's first
 * allocation. A program that watches its own size must not see the size grow later on. */
void pw_reserve_heap(void);

/* For threads that run for some microseconds at each tick. Each asks for the shortest time slices. If busy threads use
 * its core, a scheduler that supports such requests (Linux 6.12) lets it run sooner. Its share of the core stays the
 * same. Without such a scheduler nothing changes. */
void pw_ask_for_short_slices(void);

#endif

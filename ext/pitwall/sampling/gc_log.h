/* What every garbage collection run took: times told by gc.c, causes and object counts asked of Ruby. */
#ifndef PITWALL_GC_LOG_H
#define PITWALL_GC_LOG_H

#include <stdbool.h>
#include <stdint.h>

void pw_gc_log_init(void);
void pw_gc_log_start(void);
/* Frees all; in a forked child (`frees` false) forgets it. */
void pw_gc_log_forget(bool frees);

/* While collecting, in this order. A run lasts until the next begins: sweeping is done bit by bit while the program goes on. */
void pw_gc_log_begin(int64_t at, uint32_t thread_id);
void pw_gc_log_time(bool sweeping, int64_t ns);
void pw_gc_log_swept(void);
void pw_gc_log_pause(int64_t from, int64_t to, uint32_t thread_id);

/* GCEV chunks of the runs that ended since the last call. Holds the session's lock. `last`: also of the one going on, with the GVL. */
void pw_gc_log_write(bool last);

#endif

/* A row for every garbage collection: times from gc.c, causes and object counts from Ruby. GCEV of
 * doc/record-format.md. */
#ifndef PITWALL_GC_LOG_H
#define PITWALL_GC_LOG_H

#include "session/modules.h"
#include <stdint.h>

extern const pw_module pw_gc_log;

void pw_gc_log_init(void);
void pw_gc_log_start(void);

/* Called during a collection, in this order. A run lasts until the next run begins, because sweeping is done in small
 * steps while the program continues. */
void pw_gc_log_begin(int64_t at, uint32_t thread_id);
void pw_gc_log_time(bool sweeping, int64_t ns);
void pw_gc_log_swept(void);
void pw_gc_log_pause(int64_t from, int64_t to, uint32_t thread_id);

#endif

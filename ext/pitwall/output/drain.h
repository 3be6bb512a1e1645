/* The drain: a thread that takes records from the ring, turns stacks into nodes, collects rows and writes the rows. The
 * drain never calls into Ruby. */
#ifndef PITWALL_DRAIN_H
#define PITWALL_DRAIN_H

#include "output/ring.h"
#include <stdbool.h>

/* `hurried`: the ring fills fast, so the drain empties the ring more often. */
void pw_drain_init(bool hurried);
void pw_drain_free(bool frees);
int pw_start_drain(void); /* 0 or an errno */
/* Joins the drain's thread. The ring is empty afterwards. */
void pw_stop_drain(void);
/* Writes the last chunks. Called after pw_stop_drain and pw_naming_finish. */
void pw_final_flush(const char *reason);
int64_t pw_drain_cpu(void); /* CPU ns of the drain's thread; 0 until the thread has ended */

/* Passes records of this kind to `take`, which is called under the session lock. `take` returns true to have the rows
 * written now. */
void pw_drain_take(uint8_t kind, bool (*take)(const pw_record_header *record));

/* A thread has put its END record into the ring. Every 256th call wakes the drain. */
void pw_drain_thread_ended(void);
/* From now on frames without a name keep the tables from being emptied. Called before the last entries are made.
 * holds session lock */
void pw_drain_keep_tables(void);

/* Makes the drain write all records, and waits for the drain. For a process that is about to end without a stop. Any
 * thread may call it. */
void pw_flush_before_end(void);
/* Like pw_flush_before_end, and writes `reason` as the recording's end. NULL: the recording may go on. */
void pw_flush_as_end(const char *reason);

#endif

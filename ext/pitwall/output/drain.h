/* The drain: a thread that takes records from the ring, turns stacks into nodes, collects rows and writes them. It
 * never calls into Ruby. */
#ifndef PITWALL_DRAIN_H
#define PITWALL_DRAIN_H

#include "output/ring.h"
#include <stdbool.h>

/* `hurried`: the ring fills fast, and is visited more often. */
void pw_drain_init(bool hurried);
void pw_drain_free(bool frees);
int pw_start_drain(void); /* 0 or an errno */
/* Joins the thread; the ring is empty afterwards. */
void pw_stop_drain(void);
/* After pw_stop_drain, with everything named. */
void pw_final_flush(const char *reason);
int64_t pw_drain_cpu(void); /* CPU ns of the thread that has ended */

/* Records of this kind go to `take`, with the session lock held. True: what was taken is to be written now. */
void pw_drain_take(uint8_t kind, bool (*take)(const pw_record_header *record));

/* A thread has put its END record into the ring: many of these wake the drain. */
void pw_drain_thread_ended(void);
/* The tables are not emptied any more: what is entered now is the last. holds session lock */
void pw_drain_keep_tables(void);

/* Has the drain write all there is, and waits for it: the process is about to end without another word. For any
 * thread. */
void pw_flush_before_end(void);
/* The same, and the recording says that it ended by `reason`; NULL: it may go on. */
void pw_flush_as_end(const char *reason);

#endif

/* Labels: what the program says its work is for (a route, a job), as small numbers on samples; and marks: when such a piece of work
 * began and ended.
 *
 * A label set is defined once a recording, under a number. The running fiber's number stands in its thread's `label`, where a signal
 * handler reads it. A fiber remembers its own as a fiber-local variable, so that switching to it puts it back. */
#ifndef PITWALL_LABELS_H
#define PITWALL_LABELS_H

#include "sampling/queries.h"
#include "session/threads.h"

void pw_labels_init(VALUE native);
void pw_labels_start(void);
void pw_labels_stop(void);
/* The calling thread; NULL: it is not recorded. needs GVL */
pw_thread *pw_labels_here(void);
/* Frees all; in a forked child (`frees` false) forgets it. */
void pw_labels_forget(bool frees);

/* The drain's, with the session's lock. */
bool pw_labels_used(void);                          /* has a set been defined in this recording? */
void pw_labels_mark(uint32_t thread, uint32_t label, int64_t end, int64_t ns, const pw_query_part *parts, uint32_t queries); /* end: since the recording's start */
void pw_labels_write(void);                         /* LABL, QURY, QSUM, MARK, QREQ, WORK and TEST chunks of doc/record-format.md: what is new */

#endif

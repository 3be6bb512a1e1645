/* Labels: what the program says its work is for (a route, a job), as small numbers on samples; and marks: when such
 * a piece of work began and ended.
 *
 * A label set is defined once a recording, under a number. The running fiber's number stands in its thread's
 * `label`, where a signal handler reads it. A fiber remembers its own as a fiber-local variable, so that switching
 * to it puts it back. */
#ifndef PITWALL_LABELS_H
#define PITWALL_LABELS_H

#include "session/modules.h"

/* Writes LABL, QURY, QSUM, MARK, QREQ, WORK and TEST chunks of doc/record-format.md. */
extern const pw_module pw_labels;

#endif

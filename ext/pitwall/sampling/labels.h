/* Labels: the program labels its work (a route, a job). Samples carry the labels as small numbers. Marks: the begin and
 * end of such a piece of work.
 *
 * A label set is defined once per recording and gets a number. The number of the running fiber is in its thread's
 * `label`, where a signal handler reads it. Each fiber keeps its number in a fiber-local variable. A switch to a fiber
 * restores the fiber's number. */
#ifndef PITWALL_LABELS_H
#define PITWALL_LABELS_H

#include "session/modules.h"

/* Writes LABL, QURY, QSUM, MARK, QREQ, WORK and TEST chunks of doc/record-format.md. */
extern const pw_module pw_labels;

#endif

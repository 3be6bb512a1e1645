/* Queries to databases: how often each was asked and how long it took, by the labels of the work that asked.
 *
 * A query is known by the application's line that asked it, by a digest of its text, and by its kind. Within a
 * piece of work (a request, a job) queries are added up in the work's own object, which the running fiber holds;
 * its end sends the sums to the drain with the mark. Other queries go to the drain one by one. */
#ifndef PITWALL_QUERIES_H
#define PITWALL_QUERIES_H

#include "output/records.h"
#include "session/modules.h"

extern const pw_module pw_queries;

/* The parts of a Queries::Work, which ends with this; none for nil. needs GVL */
const pw_query_part *pw_queries_of(VALUE work, uint32_t *count);

/* QURY and QSUM chunks of doc/record-format.md: what is new. holds session lock */
void pw_queries_write(void);

#endif

/* Database queries: the count and the time of each query, by the labels of the work that made it.
 *
 * A query is identified by the application's line that made it, a digest of its text, and its kind. Within a piece of
 * work (a request, a job) queries are summed up in the work's object, which the running fiber holds. At the end of the
 * work, the sums go to the drain with the mark. Other queries go to the drain one by one. */
#ifndef PITWALL_QUERIES_H
#define PITWALL_QUERIES_H

#include "output/records.h"
#include "session/modules.h"

extern const pw_module pw_queries;

/* Returns the sums of a Queries::Work, and ends the work. nil: no sums. needs GVL */
const pw_query_part *pw_queries_of(VALUE work, uint32_t *count);

/* Writes new rows: QURY and QSUM chunks of doc/record-format.md. holds session lock */
void pw_queries_write(void);

#endif

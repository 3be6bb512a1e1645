/* Queries to databases: how often each was asked and how long it took, by the labels of the work that asked.
 *
 * A query is known by the application's line that asked it, by a digest of its text, and by its kind. Within a piece of work (a
 * request, a job) queries are added up in the work's own object, which the running fiber holds; its end sends the sums to the drain
 * with the mark. Other queries go to the drain one by one. */
#ifndef PITWALL_QUERIES_H
#define PITWALL_QUERIES_H

#include <ruby/ruby.h>
#include "session/threads.h"

/* What one query took of a piece of work. */
typedef struct {
    uint32_t query, count; /* query: by its number in the recording; 0: those that no number was left for */
    uint64_t ns;
} pw_query_part;

/* Different queries of a piece of work that are told apart. */
#define PW_QUERY_PARTS 256

void pw_queries_init(VALUE native);
void pw_queries_start(void);
/* Frees all; in a forked child (`frees` false) forgets it. */
void pw_queries_forget(bool frees);

/* The parts of a Queries::Work, which ends with this; none for nil. needs GVL */
const pw_query_part *pw_queries_of(VALUE work, uint32_t *count);

/* The drain's, with the session's lock. */
void pw_queries_take(uint32_t label, const pw_query_part *parts, uint32_t count, bool of_work);
void pw_queries_write(void); /* QURY and QSUM chunks of doc/record-format.md: what is new */

#endif

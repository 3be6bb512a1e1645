/* What producers put into the ring and the drain takes out of it. */
#ifndef PITWALL_RECORDS_H
#define PITWALL_RECORDS_H

#include "output/record_kinds.h"
#include "output/ring.h"
#include "session/threads.h"

/* What one query took of a piece of work. */
typedef struct {
    uint32_t query, count; /* query: by its number in the recording; 0: those that no number was left for */
    uint64_t ns;
} pw_query_part;

/* Different queries that are counted apart in one piece of work. */
#define PW_QUERY_PARTS 256

/* SAMPLE: a stack, leaf first, of which the `common` frames next to the root are as in the thread's previous
 * record. STACK: the same without any time, for what other records name. CHARGE: no new stack, the previous one is
 * charged up to `wall` and `cpu`. END: the thread is gone. MARK: a piece of work, from `cpu` to `wall`, with
 * `captures` queries (pw_query_part) behind it. QUERY: one of no work, likewise. */
typedef struct {
    pw_record_header header;
    pw_thread *thread;
    int64_t wall, cpu; /* the thread's clocks in ns: a row is the difference to the thread's previous row */
    uint32_t common, fresh;
    uint32_t owned;    /* as `fresh`, or 0: none has an owner to tell */
    uint32_t label;    /* of the labels it was under (labels.h) */
    VALUE frames[];    /* `fresh` frames, then `owned` owners (0: none), then `fresh` ints of lines */
} pw_sample;

#endif

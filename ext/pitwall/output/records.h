/* The records that producers put into the ring and the drain takes out. */
#ifndef PITWALL_RECORDS_H
#define PITWALL_RECORDS_H

#include "output/record_kinds.h"
#include "output/ring.h"
#include "session/threads.h"

/* The sum of one query within a piece of work. */
typedef struct {
    uint32_t query, count; /* query: its number in the recording; 0: all queries without a number */
    uint64_t ns;
} pw_query_part;

/* The most different queries that one piece of work counts separately. */
#define PW_QUERY_PARTS 256

/* Counters of the VM's caches (RubyVM.stat) over one piece of work. */
#define PW_WORK_COUNTERS 8
typedef struct {
    bool known; /* false: other work ran beside it, and the counters are the process's */
    uint32_t increase[PW_WORK_COUNTERS];
} pw_work_increase;

/* SAMPLE: a stack, leaf first. The `common` frames next to the root are as in the thread's previous record.
 * STACK: like SAMPLE, but without time. Other records refer to the stack.
 * CHARGE: no new stack. The previous stack is charged up to `wall` and `cpu`.
 * END: the thread has ended.
 * MARK: a piece of work, from time `cpu` to time `wall`. `captures` is the number of queries (pw_query_part) that
 * follow the record. Behind them is a pw_work_increase.
 * QUERY: one query outside any piece of work, like MARK without the pw_work_increase. */
typedef struct {
    pw_record_header header;
    pw_thread *thread;
    int64_t wall, cpu; /* the thread's clocks in ns: a row is the difference to the thread's previous row */
    uint32_t common, fresh;
    uint32_t owned;    /* equal to `fresh`, or 0: no frame has an owner */
    uint32_t label;    /* number of the label set (labels.h) */
    VALUE frames[];    /* `fresh` frames, then `owned` owners (0: none), then `fresh` ints of lines */
} pw_sample;

#endif

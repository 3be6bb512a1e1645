/* Writes traced calls as CALL and TRAC chunks (doc/record-format.md). holds session lock */
#ifndef PITWALL_TRACE_WRITER_H
#define PITWALL_TRACE_WRITER_H

#include "collectors/trace/trace_probe.h"

typedef struct {
    const pw_tick_clock *clock;
    const pw_probe *probes;
    bool cpu, objects, bytes;
    const char *gc;
    uint64_t gc_over;
} pw_trace_facts;

/* At the end: numbers all nodes in the recording. */
void pw_trace_number(pw_call_tree *tree);
/* Writes the nodes that changed since the last call. */
void pw_trace_write(const pw_trace_facts *facts);

#endif

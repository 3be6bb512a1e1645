/* The counters of a recording. Each is cumulative since the recording began. */
#ifndef PITWALL_COUNTERS_H
#define PITWALL_COUNTERS_H

#include "tools/hidden.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One line for each counter: its constant, its name in the STAT chunk (doc/record-format.md), and whether Native.stop
 * returns the counter. */
#define PW_COUNTER_TABLE(COUNTER) \
    COUNTER(PW_TICKS, "ticks", true) \
    COUNTER(PW_CAPTURES, "captures", true) \
    COUNTER(PW_MISSED, "missed_ticks", true) \
    COUNTER(PW_DEFERRED, "deferred_ticks", true) \
    COUNTER(PW_DROPPED, "dropped", true) \
    COUNTER(PW_TORN_READS, "torn_reads", true) \
    COUNTER(PW_REFUSED, "refused_frames", true) \
    COUNTER(PW_TRUNCATED, "truncated", false) \
    COUNTER(PW_NATIVE_STACKS, "native_stacks", true) \
    COUNTER(PW_NATIVE_LOST, "native_lost", true) \
    COUNTER(PW_NATIVE_GUESSED, "native_guessed", true) \
    COUNTER(PW_HANDLER_NS, "handler_ns", true) \
    COUNTER(PW_NAMING_NS, "naming_ns", true) \
    COUNTER(PW_RESETS, "resets", true) \
    COUNTER(PW_TIMERS_REFUSED, "timers_refused", false) \
    COUNTER(PW_SIGNAL_LOST, "signal_lost", true) \
    COUNTER(PW_LABELS_LEFT_OUT, "labels_left_out", false) \
    COUNTER(PW_QUERIES_LEFT_OUT, "queries_left_out", false) \
    COUNTER(PW_QUERIES_FAILED, "queries_failed", false) \
    COUNTER(PW_BURSTS, "bursts", false) \
    COUNTER(PW_GC_COUNT, "gc_count", true) \
    COUNTER(PW_GC_UNREPORTED, "gc_untold", false) \
    /* The following counters are members of the object "gc_ns". */ \
    COUNTER(PW_GC_MARKING_NS, "marking", false) \
    COUNTER(PW_GC_SWEEPING_NS, "sweeping", false)

enum {
#define PW_COUNTER_CONSTANT(constant, name, returned) constant,
    PW_COUNTER_TABLE(PW_COUNTER_CONSTANT)
#undef PW_COUNTER_CONSTANT
    PW_COUNTERS,
    PW_FIRST_OF_GC_NS = PW_GC_MARKING_NS
};

typedef struct { const char *name; bool returned; } pw_counter_info;
extern const pw_counter_info pw_counter_infos[PW_COUNTERS];
extern PW_HIDDEN _Atomic int64_t pw_counts[PW_COUNTERS];

/* async-signal-safe */
static inline void
pw_count(int counter, int64_t n)
{
    atomic_fetch_add_explicit(&pw_counts[counter], n, memory_order_relaxed);
}

/* async-signal-safe */
static inline int64_t
pw_counter(int counter)
{
    return atomic_load_explicit(&pw_counts[counter], memory_order_relaxed);
}

void pw_counters_reset(void);

#endif

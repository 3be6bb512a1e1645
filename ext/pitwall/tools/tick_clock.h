/* A clock for every call: the processor's time-stamp counter where the counter runs at one rate on all cores, else
 * the monotonic clock.
 *
 * One reading of the counter costs a fifth of one reading of the monotonic clock. Tracing reads the clock twice a
 * call. Readings are in ticks. The length of a tick comes from reading both clocks at start and again whenever
 * ticks become ns. */
#ifndef PITWALL_TICK_CLOCK_H
#define PITWALL_TICK_CLOCK_H

#include "tools/clock.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    bool counter;       /* true: ticks are the processor's; false: ticks are ns */
    uint64_t tick_from; /* tick_from and ns_from were read together */
    int64_t ns_from;
} pw_tick_clock;

#ifdef __x86_64__
static inline uint64_t
pw_ticks(const pw_tick_clock *c)
{
    return c->counter ? __builtin_ia32_rdtsc() : (uint64_t)pw_now_ns();
}

#else
static inline uint64_t pw_ticks(const pw_tick_clock *c) { return (uint64_t)pw_now_ns(); }
#endif

/* Whether the kernel says for every core that the counter neither changes its rate nor stops. */
static inline bool
pw_counter_is_steady(void)
{
    bool steady = false;
#ifdef __x86_64__
    FILE *cpuinfo = fopen("/proc/cpuinfo", "re");
    char line[8192];
    while (cpuinfo && fgets(line, sizeof line, cpuinfo)) {
        if (strncmp(line, "flags", 5) != 0) continue;
        steady = strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
        if (!steady) break;
    }
    if (cpuinfo) fclose(cpuinfo);
#endif
    return steady;
}

/* Reads both clocks at almost the same moment. Keeps the closest of five tries, because the thread may be
 * interrupted between the readings. */
static inline void
pw_tick_clock_read(const pw_tick_clock *c, uint64_t *tick, int64_t *ns)
{
    uint64_t least = UINT64_MAX;
    *tick = 0;
    *ns = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t before = pw_ticks(c);
        int64_t now = pw_now_ns();
        uint64_t after = pw_ticks(c);
        if (after - before >= least) continue;
        least = after - before;
        *tick = before + (after - before) / 2;
        *ns = now;
    }
}

static inline void
pw_tick_clock_start(pw_tick_clock *c)
{
    c->counter = pw_counter_is_steady();
    pw_tick_clock_read(c, &c->tick_from, &c->ns_from);
}

/* The length of a tick in ns, from the readings of both clocks at start and now. */
static inline double
pw_tick_clock_tick_ns(const pw_tick_clock *c)
{
    uint64_t tick;
    int64_t ns;
    if (!c->counter) return 1.0;
    pw_tick_clock_read(c, &tick, &ns);
    return tick > c->tick_from ? (double)(ns - c->ns_from) / (double)(tick - c->tick_from) : 1.0;
}

#endif

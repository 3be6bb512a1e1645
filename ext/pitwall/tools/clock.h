/* The clocks of all measurements: CLOCK_MONOTONIC for wall time, the kernel's per-thread clock for CPU time. Both
 * are in ns. */
#ifndef PITWALL_CLOCK_H
#define PITWALL_CLOCK_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

static inline int64_t
pw_clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) != 0) return -1;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t pw_now_ns(void) { return pw_clock_ns(CLOCK_MONOTONIC); }
static inline int64_t pw_own_cpu_ns(void) { return pw_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/* The CPU clock of any thread of this process, by the thread's kernel id. Unlike pthread_getcpuclockid, the clock is
 * defined for a thread that has ended: reading the clock fails. The encoding is the kernel's (posix-timers: ~tid <<
 * 3 | PERTHREAD | SCHED). */
static inline clockid_t
pw_cpu_clock_of(pid_t tid)
{
#ifdef __linux__
    return (clockid_t)((~(unsigned int)tid) << 3) | 6;
#else
    (void)tid;
    return CLOCK_PROCESS_CPUTIME_ID;
#endif
}

#endif

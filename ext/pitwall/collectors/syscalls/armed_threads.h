/* Armed threads: threads whose system calls the kernel dispatches to Pitwall. */
#ifndef PITWALL_ARMED_THREADS_H
#define PITWALL_ARMED_THREADS_H

#include "tools/hidden.h"
#include "tools/raw_syscall.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if PW_DISPATCH

/* Constants of linux/prctl.h, which the headers of older systems lack. */
enum { PW_SET_DISPATCH = 59, PW_DISPATCH_OFF = 0, PW_DISPATCH_ON = 1 };
/* Values of a thread's selector. */
enum { PW_ALLOW = 0, PW_BLOCK = 1 };
enum { PW_ARMED_THREADS = 1 << 14 };
#define PW_SIGSYS_BIT ((uint64_t)1 << (SIGSYS - 1))

/* Notes the calls of a function without making them: each call returns `answer`. */
typedef struct { uint64_t number, arguments[6]; long answer; uint32_t calls; } pw_heard;

/* The calling thread. */
typedef struct {
    uint32_t place; /* index of its selector plus 1; 0: not armed */
    bool own;       /* its calls are Pitwall's own */
    pw_heard *heard;
} pw_armed_thread;
extern PW_HIDDEN __thread pw_armed_thread pw_armed __attribute__((tls_model("initial-exec")));
extern PW_HIDDEN volatile uint8_t pw_selectors[PW_ARMED_THREADS];

typedef struct {
    _Atomic bool active;   /* calls are recorded */
    /* the program has installed a seccomp filter: call prctl no more, neither here nor in children */
    _Atomic bool filtered;
    _Atomic uint64_t refused; /* threads that could not be armed */
} pw_armed_state;
extern PW_HIDDEN pw_armed_state pw_armed_threads;

/* Switches dispatching on or off for the calling thread. 0 or a negative errno. async-signal-safe */
long pw_dispatch_set(int how, volatile uint8_t *selector);
void pw_dispatch_disarm(void);
/* Stops dispatching for all threads. async-signal-safe */
void pw_dispatch_allow_all(void);
/* Is a thread other than the calling one armed? */
bool pw_dispatch_others_armed(void);
/* Call in a forked child, whose only thread is not armed. */
void pw_dispatch_forget_threads(void);
/* Creates the key that disarms threads at their exit. False: no thread-specific key is left. */
bool pw_dispatch_has_exit_key(void);
uint64_t pw_dispatch_refused(void);

/* Arms the calling thread if calls are recorded and it is not armed. False: arming failed and was counted. */
bool pw_dispatch_arm(void);
/* Is the calling thread armed? async-signal-safe */
bool pw_dispatch_armed(void);
/* Marks the calling thread's calls as Pitwall's own, or as the program's. Returns the previous value. */
bool pw_dispatch_own(bool own);

#else

static inline bool pw_dispatch_arm(void) { return true; }
static inline bool pw_dispatch_armed(void) { return false; }
static inline bool pw_dispatch_own(bool own) { return false; }
static inline uint64_t pw_dispatch_refused(void) { return 0; }

#endif

#endif

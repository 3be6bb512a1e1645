/* Threads whose system calls are dispatched: armed. */
#ifndef PITWALL_ARMED_THREADS_H
#define PITWALL_ARMED_THREADS_H

#include "tools/hidden.h"
#include "tools/raw_syscall.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if PW_DISPATCH

/* Those of linux/prctl.h, which older systems' headers lack. */
enum { PW_SET_DISPATCH = 59, PW_DISPATCH_OFF = 0, PW_DISPATCH_ON = 1 };
/* What a selector says of the thread's calls. */
enum { PW_ALLOW = 0, PW_BLOCK = 1 };
enum { PW_ARMED_THREADS = 1 << 14 };
#define PW_SIGSYS_BIT ((uint64_t)1 << (SIGSYS - 1))

/* What a function asks of the kernel, which is not told: each call returns `answer`. */
typedef struct { uint64_t number, arguments[6]; long answer; uint32_t calls; } pw_heard;

/* The calling thread. */
typedef struct {
    uint32_t place; /* of its selector, + 1; 0: not armed */
    bool own;       /* its calls are Pitwall's own */
    pw_heard *heard;
} pw_armed_thread;
extern PW_HIDDEN __thread pw_armed_thread pw_armed __attribute__((tls_model("initial-exec")));
extern PW_HIDDEN volatile uint8_t pw_selectors[PW_ARMED_THREADS];

typedef struct {
    _Atomic bool active;   /* calls are recorded */
    /* by the program's own seccomp filter: nothing must be asked of the kernel again, in children neither */
    _Atomic bool filtered;
    _Atomic uint64_t refused; /* threads that could not be armed */
} pw_armed_state;
extern PW_HIDDEN pw_armed_state pw_armed_threads;

/* Switches dispatching on or off for the calling thread. 0 or a negative errno. async-signal-safe */
long pw_dispatch_set(int how, volatile uint8_t *selector);
void pw_dispatch_disarm(void);
/* No call of any thread is dispatched any more. async-signal-safe */
void pw_dispatch_allow_all(void);
/* Is another thread than the calling one armed? */
bool pw_dispatch_others_armed(void);
/* In a forked child, whose only thread is not armed. */
void pw_dispatch_forget_threads(void);
/* Threads that exit are disarmed. False: there is no room for a thread-specific key. */
bool pw_dispatch_has_exit_key(void);
uint64_t pw_dispatch_refused(void);

/* Arms the calling thread, if calls are being recorded and it is not. False: could not, and it was counted. */
bool pw_dispatch_arm(void);
/* Is the calling thread armed? async-signal-safe */
bool pw_dispatch_armed(void);
/* The calling thread's calls are Pitwall's own from now on, or the program's again. What it was. */
bool pw_dispatch_own(bool own);

#else

static inline bool pw_dispatch_arm(void) { return true; }
static inline bool pw_dispatch_armed(void) { return false; }
static inline bool pw_dispatch_own(bool own) { return false; }
static inline uint64_t pw_dispatch_refused(void) { return 0; }

#endif

#endif

/* Records a thread's own system calls with Linux's syscall user dispatch (x86-64, kernel 5.11). Needs no privileges
 * and no second process.
 *
 * The kernel sends an armed thread a SIGSYS instead of making a call from outside a range of addresses. The SIGSYS
 * handler does not make the call. It only changes the address at which the thread continues.
 * - A call that is not recorded continues at a twin of its `syscall` instruction. The twin lies inside the range and
 *   jumps back behind the original instruction.
 * - A call that is recorded continues at code that reads the clock before and after the call. The code then passes
 *   the result to pw_syscall_after.
 * So the thread itself makes every call, with its own signal mask, stack and registers. A call may be interrupted,
 * and may fork, as without Pitwall. The program never loses control of the thread.
 *
 * SIGSYS must never be blocked in an armed thread, or the kernel ends the process. So SIGSYS is removed from every
 * set of signals that the program asks the kernel to block. */
#ifndef PITWALL_SYSCALL_DISPATCH_H
#define PITWALL_SYSCALL_DISPATCH_H

#include "collectors/syscalls/armed_threads.h"
#include "collectors/syscalls/syscall_frame.h"
#include "tools/raw_syscall.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t of;            /* which calls to record: PW_OF_… */
    bool looks;            /* does `before` take a stack? */
    /* Called before a recorded call, in the handler with all signals blocked or from pw_dispatch_call. Must not
     * allocate, lock or raise. May make system calls only with pw_raw_syscall. */
    void (*before)(pw_call_frame *call);
    /* Called before a call that ends the program's image if the call succeeds: exit_group, execve. Runs in the
     * thread's own context. */
    void (*ending)(void);
    /* Both are called while the calling thread is not armed. `handled`: SIGSYS is handled from now on. `disarmed`:
     * SIGSYS will be handled no longer. */
    void (*handled)(void), (*disarmed)(void);
} pw_dispatch_settings;

enum { PW_DISPATCH_SECCOMP = 1, PW_DISPATCH_TAKEN = 2, PW_DISPATCH_STEPPED_BACK = 4 };

/* The reason why calls cannot be recorded here. NULL: they can. */
const char *pw_dispatch_refusal(void);
extern const char pw_dispatch_filter[]; /* the refusal because of a seccomp filter of the program's own */
/* Records the calls of threads that are armed from now on. Returns NULL or a refusal. */
const char *pw_dispatch_start(const pw_dispatch_settings *settings, uint32_t generation);
/* Number of recorded calls that a signal announced, since the extension was loaded. */
uint64_t pw_dispatch_signals(void);
/* Stops recording calls. Waits for running handlers. `child`: set in a forked child, whose only thread is not armed. */
void pw_dispatch_stop(bool child);
/* What interfered with the recording: PW_DISPATCH_… */
unsigned pw_dispatch_flags(void);

#if PW_DISPATCH
/* Would a call that the calling thread makes now be dispatched? */
bool pw_dispatch_sees(void);
/* Makes such a call in the same way as the handler, but without a signal. `cancels`: the thread may be cancelled
 * while the call waits. */
long pw_dispatch_call(uint64_t number, const uint64_t arguments[4], bool cancels);

/* Runs `function` and notes its system calls in `heard` without making them: each call returns `answer`. Call in a
 * thread that is not armed. False: the thread is armed, or the kernel refused. */
bool pw_dispatch_overhear(void (*function)(void *), void *data, long answer, pw_heard *heard);
#endif

#endif

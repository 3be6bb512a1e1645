/* Seeing a thread's own system calls: Linux's syscall user dispatch (x86-64, kernel 5.11), without privileges or a
 * second process.
 *
 * Of an armed thread the kernel turns every call made outside a range of addresses into a SIGSYS instead. Its
 * handler performs nothing: it only changes where the thread goes on. A call of no interest goes on at a twin of
 * its `syscall` instruction inside the range, which jumps back behind the original; so the thread itself makes
 * every call, with its own signal mask, stack and registers, may be interrupted or fork in it as ever, and never
 * leaves the program's sight. A call to be recorded goes on at a piece of code that makes it between two readings
 * of the clock and has pw_syscall_after look at the result.
 *
 * SIGSYS must never be blocked in an armed thread, or the kernel ends the process: sets of signals to be blocked
 * lose it on their way. */
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
    /* In the handler, all signals blocked: nothing may allocate, lock, raise or make a call other than by
     * pw_raw_syscall. */
    void (*before)(pw_call_frame *call);
    /* Before a call that leaves nothing behind if it succeeds: exit_group, execve. In the thread's own context. */
    void (*ending)(void);
    /* While the calling thread is not armed: SIGSYS is handled from here on, and will be handled no longer. */
    void (*handled)(void), (*disarmed)(void);
} pw_dispatch_settings;

enum { PW_DISPATCH_SECCOMP = 1, PW_DISPATCH_TAKEN = 2, PW_DISPATCH_STEPPED_BACK = 4 };

/* Why calls cannot be seen here; NULL: they can. */
const char *pw_dispatch_refusal(void);
extern const char pw_dispatch_filter[]; /* the one about a seccomp filter of the program's own */
/* Calls of threads armed from now on are recorded. NULL or a refusal. */
const char *pw_dispatch_start(const pw_dispatch_settings *settings, uint32_t generation);
/* How many calls came by way of a signal, since the extension was loaded. */
uint64_t pw_dispatch_signals(void);
/* No further call is seen. Waits for handlers at work. `child`: in a forked child, whose only thread is not armed. */
void pw_dispatch_stop(bool child);
/* What got in the way: PW_DISPATCH_… */
unsigned pw_dispatch_flags(void);

#if PW_DISPATCH
/* Would a call that the calling thread makes now be dispatched? */
bool pw_dispatch_sees(void);
/* Makes that call as the handler would have it made, without a signal. `cancels`: the thread may be cancelled while
 * it waits. */
long pw_dispatch_call(uint64_t number, const uint64_t arguments[4], bool cancels);

/* Has a function run, and notes what it asks of the kernel. In a thread that is not armed. False: could not. */
bool pw_dispatch_overhear(void (*function)(void *), void *data, long answer, pw_heard *heard);
#endif

#endif

#include "collectors/syscalls/syscall_dispatch.h"

#if PW_DISPATCH

#include "collectors/syscalls/dispatch_code.h"
#include "collectors/syscalls/syscall_after.h"
#include "collectors/syscalls/syscall_table.h"
#include "tools/readable.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { SET_SECCOMP = 22, DISPATCHED = 2, MOST_PAUSES = 20000 };

static struct {
    uint32_t generation;
    pw_dispatch_settings settings;
    _Atomic unsigned flags;
    _Atomic uint64_t signals;
} state;

unsigned pw_dispatch_flags(void) { return atomic_load(&state.flags); }
uint64_t pw_dispatch_signals(void) { return atomic_load(&state.signals); }

/* ---- SIGSYS ---- */

/* The kernel's own structure. With the C library's sigaction, the return from the handler would be dispatched. */
typedef struct { void *handler; uint64_t flags; const void *restorer; uint64_t mask; } action;
enum { RESTORER = 0x04000000 };
_Static_assert(sizeof(action) == 32, "as the kernel has it");

static action theirs; /* the program's own action for SIGSYS */

static long
kernel_action(int signo, const action *set, action *old)
{
    return pw_raw_syscall(PW_NR_RT_SIGACTION, signo, (long)set, (long)old, 8, 0, 0);
}

typedef unsigned long long reg;
static inline reg *get(ucontext_t *context, int name) { return (reg *)&context->uc_mcontext.gregs[name]; }

static const int argument_names[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};

static reg argument(ucontext_t *c, int n) { return *get(c, argument_names[n]); }

/* Places a frame below the stack's red zone, and lets the thread continue at `code`. */
static pw_call_frame *
place(ucontext_t *c, reg number, const char *code)
{
    pw_call_frame *call = (pw_call_frame *)(*get(c, REG_RSP) - PW_RED_ZONE - sizeof(pw_call_frame));
    for (int i = 0; i < 6; i++) call->arguments[i] = argument(c, i);
    call->number = number;
    call->return_address = *get(c, REG_RIP);
    *get(c, REG_RSP) = (reg)call;
    *get(c, REG_RIP) = (reg)code;
    return call;
}

/* Number of the twin for calls that return to `address`. The twin is never freed. -1: no twin is free. */
static int
twin_for(_Atomic uint64_t *returns, uint32_t count, uint64_t address)
{
    uint32_t hash = (uint32_t)((address >> 1) * 0x9e3779b97f4a7c15u >> 32);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t at = (hash + i) % count;
        uint64_t there = atomic_load_explicit(&returns[at], memory_order_acquire);
        if (there == address) return (int)at;
        if (there == 0 && (atomic_compare_exchange_strong(&returns[at], &there, address) || there == address)) {
            return (int)at;
        }
    }
    return -1;
}

static bool
makes_a_process(reg number)
{
    return (number >= 56 && number <= 58) || number == 435;
}

/* Lets the thread make the call at a twin, with nothing of Pitwall's on the stack. The child of a clone may continue
 * on another stack, and the child of a vfork continues on the same stack. If no twin is free, an ordinary call uses
 * pw_go_on_plain. A call that makes a process then runs at its original address with dispatch off, and the thread is
 * armed again later. */
static void
pass(ucontext_t *c, reg number)
{
    bool makes = makes_a_process(number);
    int twin = makes ? twin_for(pw_maker_returns, PW_MAKERS, *get(c, REG_RIP)) : twin_for(pw_twin_returns, PW_TWINS,
                                                                                          *get(c, REG_RIP));
    if (twin >= 0) {
        *get(c, REG_RIP) = (reg)(makes ? pw_makers + twin * PW_MAKER_SIZE : pw_twins + twin * 8);
        if (makes) pw_dispatch_making++;
    }
    else if (!makes) place(c, number, pw_go_on_plain);
    else {
        pw_selectors[pw_armed.place - 1] = PW_ALLOW;
        *get(c, REG_RIP) -= 2;
        atomic_fetch_or(&state.flags, PW_DISPATCH_STEPPED_BACK);
    }
}

/* Passes a call whose argument `n` is the address of a set of signals to block. Removes SIGSYS from the set. */
static void
pass_with_set(ucontext_t *c, reg number, int n)
{
    uint64_t *set = (uint64_t *)argument(c, n);
    if (!set || !pw_readable((uintptr_t)set) || !(*set & PW_SIGSYS_BIT)) return pass(c, number);
    pw_call_frame *call = place(c, number, pw_go_on_plain);
    call->scratch[0] = *set & ~PW_SIGSYS_BIT;
    *get(c, argument_names[n]) = (reg)&call->scratch[0];
}

/* Same as pass_with_set, but argument `n` is the address of a pair { address of the set, size of the set }. */
static void
pass_with_set_of_pair(ucontext_t *c, reg number, int n)
{
    uint64_t *pair = (uint64_t *)argument(c, n);
    if (!pair || !pw_readable((uintptr_t)pair) || !pw_readable((uintptr_t)(pair + 1))) return pass(c, number);
    uint64_t *set = (uint64_t *)pair[0];
    if (!set || !pw_readable((uintptr_t)set) || !(*set & PW_SIGSYS_BIT)) return pass(c, number);
    pw_call_frame *call = place(c, number, pw_go_on_plain);
    call->scratch[0] = *set & ~PW_SIGSYS_BIT;
    call->scratch[1] = (uint64_t)&call->scratch[0];
    call->scratch[2] = pair[1];
    *get(c, argument_names[n]) = (reg)&call->scratch[1];
}

static bool
readable_action(uint64_t address)
{
    return pw_readable(address) && pw_readable(address + 24);
}

/* Remembers the program's own SIGSYS action. `sigaction` reports that action, and somebody_elses applies it to every
 * SIGSYS that Pitwall did not cause. */
static long
set_theirs(ucontext_t *c)
{
    const action *set = (const action *)argument(c, 1);
    action *old = (action *)argument(c, 2), wish = theirs;
    if (argument(c, 3) != 8) return -EINVAL;
    if (set) {
        if (!readable_action((uint64_t)set)) return -EFAULT;
        wish = *set;
    }
    if (old) {
        long error = kernel_action(SIGSYS, NULL, old); /* the kernel checks that `old` is writable */
        if (error) return error;
        *old = theirs;
    }
    theirs = wish;
    return 0;
}

static void
pass_sigaction(ucontext_t *c, reg number)
{
    if (argument(c, 0) == SIGSYS) {
        *get(c, REG_RAX) = (reg)set_theirs(c);
        return;
    }
    const action *set = (const action *)argument(c, 1);
    if (!set || !readable_action((uint64_t)set) || !(set->mask & PW_SIGSYS_BIT)) return pass(c, number);
    pw_call_frame *call = place(c, number, pw_go_on_plain);
    action *ours = (action *)call->scratch;
    *ours = *set;
    ours->mask &= ~PW_SIGSYS_BIT;
    *get(c, REG_RSI) = (reg)ours;
}

/* Handles a SIGSYS that a kill or a seccomp filter sent. */
static void
somebody_elses(int signo, siginfo_t *info, ucontext_t *context)
{
    if (theirs.handler == SIG_IGN && info->si_code <= 0) return;
    /* The SIGSYS sent below arrives when this handler returns, and ends the process. */
    if (theirs.handler == SIG_DFL || theirs.handler == SIG_IGN) {
        action end = {.handler = SIG_DFL};
        kernel_action(SIGSYS, &end, NULL);
        pw_raw_syscall(PW_NR_TGKILL, pw_raw_syscall(PW_NR_GETPID, 0, 0, 0, 0, 0, 0),
                       pw_raw_syscall(PW_NR_GETTID, 0, 0, 0, 0, 0, 0), SIGSYS, 0, 0, 0);
        return;
    }
    void (*handler)(int, siginfo_t *, void *) = theirs.handler;
    uint64_t mask;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    mask = (mask | theirs.mask) & ~PW_SIGSYS_BIT; /* the calls of the program's handler are dispatched too */
    if (theirs.flags & SA_RESETHAND) theirs.handler = SIG_DFL;
    pw_raw_syscall(PW_NR_RT_SIGPROCMASK, SIG_SETMASK, (long)&mask, 0, 8, 0, 0);
    handler(signo, info, context);
}

/* Begins every call to be recorded. Signals are blocked if `before` takes a stack. False: recording has stopped. */
static bool
begin(pw_call_frame *call)
{
    atomic_fetch_add(&pw_syscall_at_work, 1);
    bool records = atomic_load(&pw_armed_threads.active);
    if (records) {
        call->generation = state.generation;
        call->thread = NULL;
        call->serial = 0;
        state.settings.before(call);
    }
    atomic_fetch_sub(&pw_syscall_at_work, 1);
    return records;
}

static bool
is_recorded(reg number)
{
    return number < PW_SYSCALLS && pw_syscalls_known[number].of & state.settings.of;
}

static void
give_up(unsigned why)
{
    atomic_fetch_or(&state.flags, why);
    if (why == PW_DISPATCH_SECCOMP) atomic_store(&pw_armed_threads.filtered, true);
    pw_dispatch_allow_all();
}

static void
hear(ucontext_t *c, reg number, pw_heard *heard)
{
    heard->calls++;
    heard->number = number;
    for (int i = 0; i < 6; i++) heard->arguments[i] = argument(c, i);
    *get(c, REG_RAX) = (reg)heard->answer;
}

/* The handler, with all signals blocked. async-signal-safe */
static void
on_sigsys(int signo, siginfo_t *info, void *data)
{
    ucontext_t *c = data;
    if (info->si_code != DISPATCHED) return somebody_elses(signo, info, c);
    reg number = *get(c, REG_RAX);
    if (pw_armed.heard) return hear(c, number, pw_armed.heard);
    switch (number) {
      case PW_NR_RT_SIGRETURN:
        /* The return of another handler. RSP points to that handler's own frame. */
        *(uint64_t *)&((ucontext_t *)*get(c, REG_RSP))->uc_sigmask &= ~PW_SIGSYS_BIT;
        *get(c, REG_RIP) = (reg)pw_return_from_signal;
        return;
      case PW_NR_RT_SIGPROCMASK:
        if (argument(c, 0) == SIG_UNBLOCK || argument(c, 3) != 8) return pass(c, number);
        return pass_with_set(c, number, 1);
      case PW_NR_RT_SIGSUSPEND: return pass_with_set(c, number, 0);
      case PW_NR_PPOLL: return pass_with_set(c, number, 3);
      case PW_NR_EPOLL_PWAIT: case PW_NR_EPOLL_PWAIT2: return pass_with_set(c, number, 4);
      case PW_NR_PSELECT6: case PW_NR_IO_PGETEVENTS: return pass_with_set_of_pair(c, number, 5);
      case PW_NR_RT_SIGACTION: return pass_sigaction(c, number);
      case PW_NR_EXIT_GROUP: case PW_NR_EXECVE: case PW_NR_EXECVEAT:
        place(c, number, pw_go_on_ending);
        return;
      /* A seccomp filter may forbid calls that Pitwall needs, and end the process for them. So dispatch stops first. */
      case PW_NR_SECCOMP: give_up(PW_DISPATCH_SECCOMP); return pass(c, number);
      case PW_NR_PRCTL:
        if (argument(c, 0) == SET_SECCOMP) give_up(PW_DISPATCH_SECCOMP);
        if (argument(c, 0) == PW_SET_DISPATCH) give_up(PW_DISPATCH_TAKEN);
        return pass(c, number);
    }
    if (!is_recorded(number)) return pass(c, number);
    atomic_fetch_add_explicit(&state.signals, 1, memory_order_relaxed);
    if (!begin(place(c, number, pw_go_on_recorded))) *get(c, REG_RIP) = (reg)pw_go_on_plain;
}

static void
ending(pw_call_frame *call)
{
    if (!atomic_load(&pw_armed_threads.active)) return;
    bool before = pw_dispatch_own(true);
    state.settings.ending();
    pw_dispatch_own(before);
}

/* ---- without a signal ---- */

/* All signals except SIGSYS and the signals that a fault raises. Signals of faults cannot wait. */
static const uint64_t interruptions = ~((uint64_t)1 << (SIGSEGV - 1) | (uint64_t)1 << (SIGBUS - 1) | (uint64_t)1 << (SIGILL - 1) | (uint64_t)1 << (SIGFPE - 1) |
                                        (uint64_t)1 << (SIGTRAP - 1) | PW_SIGSYS_BIT);

static uint64_t
set_mask(const uint64_t *set)
{
    uint64_t before = 0;
    pw_raw_syscall(PW_NR_RT_SIGPROCMASK, SIG_SETMASK, (long)set, (long)&before, 8, 0, 0);
    return before;
}

bool
pw_dispatch_sees(void)
{
    return pw_armed.place && pw_selectors[pw_armed.place - 1] == PW_BLOCK && !pw_dispatch_making;
}

static bool
begin_undisturbed(pw_call_frame *call)
{
    PW_SYSCALL_MEET_STACK_END();
    if (!state.settings.looks) return begin(call);
    uint64_t mask = set_mask(&interruptions);
    bool records = begin(call);
    set_mask(&mask);
    return records;
}

long
pw_dispatch_call(uint64_t number, const uint64_t given[4], bool cancels)
{
    pw_call_frame call = {.arguments = {given[0], given[1], given[2], given[3]}, .number = number};
    bool records = is_recorded(number) && begin_undisturbed(&call);
    int type = PTHREAD_CANCEL_DEFERRED;
    if (cancels) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    if (records) pw_call_recorded(&call);
    else call.result = pw_raw_syscall((long)number, (long)given[0], (long)given[1], (long)given[2], (long)given[3], 0,
                                      0);
    if (cancels) pthread_setcanceltype(type, NULL);
    if (records) pw_syscall_after(&call);
    return call.result;
}

bool
pw_dispatch_overhear(void (*function)(void *), void *data, long answer, pw_heard *heard)
{
    static volatile uint8_t selector;
    *heard = (pw_heard){.answer = answer};
    if (pw_armed.place) return false;
    uint64_t mask = set_mask(&interruptions);
    pw_armed.heard = heard;
    selector = PW_ALLOW;
    bool hears = pw_dispatch_set(PW_DISPATCH_ON, &selector) == 0;
    if (hears) {
        selector = PW_BLOCK;
        function(data);
        selector = PW_ALLOW;
        pw_dispatch_set(PW_DISPATCH_OFF, NULL);
    }
    pw_armed.heard = NULL;
    mask &= ~PW_SIGSYS_BIT;
    set_mask(&mask);
    return hears;
}

/* ---- start and stop ---- */

const char pw_dispatch_filter[] = "the program has set a seccomp filter, which might end it for what Pitwall needs of the kernel";

const char *
pw_dispatch_refusal(void)
{
    if (atomic_load(&pw_armed_threads.filtered)) return pw_dispatch_filter;
    if (pw_armed.place) return NULL;
    static volatile uint8_t selector = PW_ALLOW;
    long error = pw_dispatch_set(PW_DISPATCH_ON, &selector);
    if (error == 0) pw_dispatch_set(PW_DISPATCH_OFF, NULL);
    switch (-error) {
      case 0: return NULL;
      case EINVAL: return "this kernel has no syscall user dispatch (Linux 5.11 and newer do)";
      case EPERM: case ENOSYS: case EACCES: return "a seccomp filter refuses syscall user dispatch (prctl)";
      default: return "this kernel refuses syscall user dispatch";
    }
}

/* Removes SIGSYS from the masks of the handlers that are already installed. */
static void
open_masks(void)
{
    for (int signo = 1; signo <= 64; signo++) {
        action a;
        if (signo == SIGSYS || kernel_action(signo, NULL, &a) != 0 || !(a.mask & PW_SIGSYS_BIT)) continue;
        a.mask &= ~PW_SIGSYS_BIT;
        kernel_action(signo, &a, NULL);
    }
}

const char *
pw_dispatch_start(const pw_dispatch_settings *wanted, uint32_t number)
{
    const char *refusal = pw_dispatch_refusal();
    if (refusal) return refusal;
    if (!pw_dispatch_has_exit_key()) return "no room for a thread-specific key";
    state.settings = *wanted;
    pw_dispatch_ending = ending;
    state.generation = number;
    atomic_store(&state.flags, 0);
    atomic_store(&pw_armed_threads.refused, 0);
    action ours = {.handler = on_sigsys, .flags = SA_SIGINFO | SA_ONSTACK | RESTORER,
                   .restorer = pw_return_from_signal, .mask = ~(uint64_t)0}, before;
    if (kernel_action(SIGSYS, &ours, &before) != 0) return "SIGSYS cannot be handled";
    if (before.handler != on_sigsys) theirs = before;
    open_masks();
    state.settings.handled();
    atomic_store(&pw_syscall_generation, number);
    atomic_store(&pw_armed_threads.active, true);
    return NULL;
}

void
pw_dispatch_stop(bool child)
{
    pw_dispatch_allow_all();
    atomic_store(&pw_syscall_generation, 0);
    if (child) {
        pw_dispatch_forget_threads();
        atomic_store(&pw_syscall_at_work, 0);
    }
    else {
        pw_dispatch_disarm();
        if (!atomic_load(&pw_armed_threads.filtered)) state.settings.disarmed();
    }
    /* Wait for the handlers of other threads, which take microseconds. The wait is limited: if a handler of the
     * program jumps out of pw_syscall_after, the count never returns to 0. */
    for (int i = 0; atomic_load(&pw_syscall_at_work) > 0 && i < MOST_PAUSES; i++) {
        struct timespec pause = {0, 20000};
        pw_raw_syscall(PW_NR_NANOSLEEP, (long)&pause, 0, 0, 0, 0, 0);
    }
    atomic_store(&pw_syscall_at_work, 0);
    /* Keep Pitwall's handler while another thread is armed: a SIGSYS may be pending for that thread. Pitwall's handler
     * also applies the program's own action. */
    action now;
    if (!pw_dispatch_others_armed() && kernel_action(SIGSYS, NULL, &now) == 0 && now.handler == on_sigsys) {
        kernel_action(SIGSYS, &theirs, NULL);
    }
}

#else

const char pw_dispatch_filter[] = "";
static const char elsewhere[] = "system calls are seen from inside on Linux, x86-64, only, where GCC compiled the extension";

const char *pw_dispatch_refusal(void) { return elsewhere; }
const char *pw_dispatch_start(const pw_dispatch_settings *settings, uint32_t generation) { return elsewhere; }
void pw_dispatch_stop(bool child) {}
unsigned pw_dispatch_flags(void) { return 0; }
uint64_t pw_dispatch_signals(void) { return 0; }

#endif

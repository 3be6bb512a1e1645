#include "sampling/held_signal.h"
#include "sampling/capture.h"
#include "session/threads.h"
#include "tools/raw_syscall.h"
#include <signal.h>
#ifdef __linux__
# include <sys/syscall.h>
#endif

static struct {
    _Atomic bool handled; /* ticks come by signal */
    _Atomic int count;    /* native threads that have the signal blocked */
} state;

void pw_signal_is_handled(bool handled) { atomic_store(&state.handled, handled); }
bool pw_signal_held_back(void) { return atomic_load(&state.count) > 0; }

/* Changes the mask. Returns whether the signal was blocked before. Uses a raw system call, which the dispatch of system
 * calls does not see (syscall_dispatch.h). */
static bool
mask(int how, int signo)
{
#if PW_DISPATCH
    uint64_t set = (uint64_t)1 << (signo - 1), before = 0;
    pw_raw_syscall(SYS_rt_sigprocmask, how, (long)&set, (long)&before, 8, 0, 0);
    return before & set;
#else
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, signo);
    pthread_sigmask(how, &set, &before);
    return sigismember(&before, signo) == 1;
#endif
}

void
pw_signal_hold_back(void)
{
    if (!atomic_load_explicit(&state.handled, memory_order_relaxed) || pw_tls.held_back) return;
    int signo = pw_current.signo;
    if (mask(SIG_BLOCK, signo)) return; /* the program itself has blocked it */
    pw_tls.held_back = signo;
    atomic_fetch_add(&state.count, 1);
}

/* Unblocks the signal. A pending tick arrives now, and its handler finds `after` set. */
static void
let_through(int signo, volatile sig_atomic_t *after)
{
    *after = 1;
    atomic_signal_fence(memory_order_seq_cst);
    mask(SIG_UNBLOCK, signo);
    atomic_signal_fence(memory_order_seq_cst);
    *after = 0;
    pw_tls.held_back = 0;
    atomic_fetch_sub(&state.count, 1);
}

void
pw_signal_let_through(void)
{
    int signo = pw_tls.held_back;
    if (signo) let_through(signo, &pw_tls.returning);
}

/* Called by the thread itself. */
static void
set_waits(pw_thread *t, bool waits)
{
    atomic_store_explicit(&t->own.changes, atomic_load_explicit(&t->own.changes, memory_order_relaxed) + 1,
                          memory_order_release);
    atomic_store(&t->own.waits, waits);
}

/* Takes the stack now, because the drain's look from outside would find no native frames. */
static void
take_before(pw_thread *t)
{
    t->own.busy = 1;
    atomic_store(&t->own.held, pw_capture_stack(t));
    t->own.busy = 0;
}

/* Does nothing for a thread without the GVL: its signal is blocked already. */
int
pw_signal_wait_begins(void)
{
    if (!atomic_load_explicit(&state.handled, memory_order_relaxed) || pw_tls.held_back || !pw_enter_handler()) {
        return 0;
    }
    pw_thread *t = pw_self();
    if (t && !t->own.busy && !t->sample.finished &&
        !pw_off_gvl(atomic_load_explicit(&t->own.state, memory_order_relaxed))) {
        int64_t now = pw_now_ns();
        pw_signal_hold_back();
        if (pw_tls.held_back) {
            atomic_store(&t->own.suspended_at, now);
            if (t->native) take_before(t);
            set_waits(t, true);
        }
    }
    pw_leave_handler();
    return pw_tls.held_back;
}

void
pw_signal_wait_ends(void)
{
    int signo = pw_tls.held_back;
    if (!signo) return; /* in a forked child */
    if (pw_enter_handler()) {
        pw_thread *t = pw_self();
        if (t) {
            set_waits(t, false);
            if (t->native) atomic_store(&t->own.held, false);
        }
        pw_leave_handler();
    }
    let_through(signo, &pw_tls.waited);
}

/* Unblocks first: a library may fork without the GVL, while the signal is blocked. */
void
pw_signal_in_child(void)
{
    pw_signal_let_through();
    atomic_store(&state.count, 0);
}

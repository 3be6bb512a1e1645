#include "collectors/syscalls/armed_threads.h"

#if PW_DISPATCH

#include "collectors/syscalls/dispatch_code.h"
#include "collectors/syscalls/syscall_table.h"
#include <pthread.h>
#include <signal.h>

/* The kernel reads an armed thread's byte at each call until the thread ends. So the array is never unmapped, and a
 * place is freed only when its thread is disarmed. */
volatile uint8_t pw_selectors[PW_ARMED_THREADS];
static _Atomic bool taken[PW_ARMED_THREADS];

__thread pw_armed_thread pw_armed;

pw_armed_state pw_armed_threads;

static struct {
    pthread_key_t exit_key;
    bool has_exit_key;
    _Atomic uint32_t last; /* where the next search for a free place starts */
} state;

uint64_t pw_dispatch_refused(void) { return atomic_load(&pw_armed_threads.refused); }
bool pw_dispatch_armed(void) { return pw_armed.place != 0; }

long
pw_dispatch_set(int how, volatile uint8_t *selector)
{
    if (how == PW_DISPATCH_OFF) return pw_raw_syscall(PW_NR_PRCTL, PW_SET_DISPATCH, PW_DISPATCH_OFF, 0, 0, 0, 0);
    return pw_raw_syscall(PW_NR_PRCTL, PW_SET_DISPATCH, PW_DISPATCH_ON, (long)__start_pw_unseen,
                          __stop_pw_unseen - __start_pw_unseen, (long)selector, 0);
}

void
pw_dispatch_disarm(void)
{
    if (!pw_armed.place) return;
    uint32_t at = pw_armed.place - 1;
    pw_selectors[at] = PW_ALLOW;
    if (atomic_load(&pw_armed_threads.filtered)) return;
    pw_dispatch_set(PW_DISPATCH_OFF, NULL);
    pw_armed.place = 0;
    atomic_store(&taken[at], false);
}

static void thread_exits(void *unused) { pw_dispatch_disarm(); }

bool
pw_dispatch_arm(void)
{
    if (!atomic_load(&pw_armed_threads.active)) return true;
    if (pw_armed.place) {
        if (!pw_armed.own) pw_selectors[pw_armed.place - 1] = PW_BLOCK; /* after PW_DISPATCH_STEPPED_BACK */
        return true;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < PW_ARMED_THREADS && !pw_armed.place; i++) {
        bool is_free = false;
        at = (atomic_load(&state.last) + i) % PW_ARMED_THREADS;
        if (atomic_compare_exchange_strong(&taken[at], &is_free, true)) pw_armed.place = at + 1;
    }
    atomic_store(&state.last, at + 1);
    uint64_t sigsys = PW_SIGSYS_BIT;
    if (pw_armed.place) {
        pw_selectors[at] = PW_ALLOW;
        pw_raw_syscall(PW_NR_RT_SIGPROCMASK, SIG_UNBLOCK, (long)&sigsys, 0, 8, 0, 0);
        if (pw_dispatch_set(PW_DISPATCH_ON, &pw_selectors[at]) != 0) {
            pw_armed.place = 0;
            atomic_store(&taken[at], false);
        }
    }
    if (!pw_armed.place) {
        atomic_fetch_add(&pw_armed_threads.refused, 1);
        return false;
    }
    pw_dispatch_making = 0; /* a forked child inherits the count of the parent's thread */
    pthread_setspecific(state.exit_key, &pw_armed);
    if (!pw_armed.own) pw_selectors[at] = PW_BLOCK;
    return true;
}

bool
pw_dispatch_own(bool own)
{
    bool before = pw_armed.own;
    pw_armed.own = own;
    if (pw_armed.place) {
        pw_selectors[pw_armed.place - 1] = !own && atomic_load(&pw_armed_threads.active) ? PW_BLOCK : PW_ALLOW;
    }
    return before;
}

void
pw_dispatch_allow_all(void)
{
    atomic_store(&pw_armed_threads.active, false);
    for (uint32_t i = 0; i < PW_ARMED_THREADS; i++) {
        if (pw_selectors[i] != PW_ALLOW) pw_selectors[i] = PW_ALLOW;
    }
}

bool
pw_dispatch_others_armed(void)
{
    for (uint32_t i = 0; i < PW_ARMED_THREADS; i++) {
        if (atomic_load(&taken[i]) && i + 1 != pw_armed.place) return true;
    }
    return false;
}

void
pw_dispatch_forget_threads(void)
{
    for (uint32_t i = 0; i < PW_ARMED_THREADS; i++) atomic_store(&taken[i], false);
    pw_armed.place = 0;
}

bool
pw_dispatch_has_exit_key(void)
{
    if (!state.has_exit_key && pthread_key_create(&state.exit_key, thread_exits) != 0) return false;
    return state.has_exit_key = true;
}

#endif

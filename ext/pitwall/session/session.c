#include "session/session.h"
#include <time.h>

pw_session pw_current;
_Atomic uint32_t pw_live_generation;

static struct {
    uint32_t generations;
    _Atomic int handlers; /* the number of handlers that run now */
    /* the main Ractor's main thread; set again in a forked child, which begins its own recording */
    VALUE main_thread;
} state;

uint32_t
pw_next_generation(void)
{
    return ++state.generations ? state.generations : ++state.generations;
}

void
pw_session_init(void)
{
    pthread_mutex_init(&pw_current.lock, NULL);
    pw_current.next_thread_id = 1;
}

void
pw_session_clear(bool frees)
{
    if (frees) pthread_mutex_destroy(&pw_current.lock);
    pw_current = (pw_session){0};
}

bool
pw_enter_handler(void)
{
    atomic_fetch_add(&state.handlers, 1);
    if (pw_session_generation()) return true;
    atomic_fetch_sub(&state.handlers, 1);
    return false;
}

void
pw_leave_handler(void)
{
    atomic_fetch_sub(&state.handlers, 1);
}

void
pw_wait_for_handlers(void)
{
    while (atomic_load(&state.handlers) > 0) { /* handlers run for microseconds */
        struct timespec pause = {0, 20000};
        nanosleep(&pause, NULL);
    }
}

void pw_forget_handlers(void) { atomic_store(&state.handlers, 0); }

bool pw_in_main_ractor(void) { return rb_thread_main() == state.main_thread; }
void pw_remember_main_ractor(void) { state.main_thread = rb_thread_main(); }

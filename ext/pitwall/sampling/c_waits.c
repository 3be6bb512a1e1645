#include "sampling/c_waits.h"
#include "tools/stand_ins.h"

#if PW_STAND_INS

#include "sampling/held_signal.h"
#include <ruby/ruby.h>
#include <signal.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* A tick's signal ends these functions with EINTR, even with SA_RESTART (signal(7)). Code without the GVL gets no
 * signal (signal_ticker.c), but code with the GVL does. So the signal is blocked until the function has returned. A
 * tick that was due during the wait is taken then, by the same timer. The stack is still the one that waited.
 *
 * Only blocking is exact. Skipping threads whose CPU clock stands still would send the first signal of each wait.
 * Repeating a call after EINTR would need to know whose signal it was, and how much time is left.
 *
 * Not covered: calls on sockets with a timeout (SO_RCVTIMEO, SO_SNDTIMEO). Covering them would add two system calls to
 * every call on a socket. */

enum { NONE = -1 };

/* F(name, n): argument n is the signal mask during the call. W(name, n): argument n is the set of signals to wait
 * for. */
#define FUNCTIONS(F, W) \
    F(poll, NONE) F(__poll_chk, NONE) F(ppoll, 3) F(__ppoll_chk, 3) F(select, NONE) F(pselect, 5) \
    F(epoll_wait, NONE) F(epoll_pwait, 4) F(epoll_pwait2, 4) \
    F(nanosleep, NONE) F(clock_nanosleep, NONE) F(usleep, NONE) F(sleep, NONE) F(thrd_sleep, NONE) \
    F(sem_timedwait, NONE) F(sem_clockwait, NONE) F(pause, NONE) F(sigsuspend, 0) W(sigtimedwait, 0) W(sigwaitinfo, 0) \
    F(msgrcv, NONE) F(msgsnd, NONE) F(semop, NONE) F(semtimedop, NONE)

#define NUMBER(name, n) AT_##name,
enum { FUNCTIONS(NUMBER, NUMBER) LOOK_UP, ALL };
#undef NUMBER

static const struct { const char *name; int set; bool waits_for_it; } functions[] = {
#define MASKED(name, n) {#name, n, false},
#define AWAITED(name, n) {#name, n, true},
    FUNCTIONS(MASKED, AWAITED)
#undef MASKED
#undef AWAITED
};

typedef long function(long, long, long, long, long, long);
static function *originals[LOOK_UP];

static long
stand_in(int n, long a, long b, long c, long d, long e, long f)
{
    int signo = pw_signal_wait_begins();
    if (!signo) return originals[n](a, b, c, d, e, f);
    long given[6] = {a, b, c, d, e, f};
    sigset_t set;
    int at = functions[n].set;
    if (at != NONE && given[at]) {
        set = *(const sigset_t *)given[at];
        if (functions[n].waits_for_it) sigdelset(&set, signo); /* otherwise the call would return the tick's signal */
        else sigaddset(&set, signo);
        given[at] = (long)&set;
    }
    long answer = originals[n](given[0], given[1], given[2], given[3], given[4], given[5]);
    int error = errno;
    pw_signal_wait_ends();
    errno = error;
    return answer;
}

#define STANDS_IN(name, n) \
    static long in_place_of_##name(long a, long b, long c, long d, long e, long f) \
    { \
        return stand_in(AT_##name, a, b, c, d, e, f); \
    }
FUNCTIONS(STANDS_IN, STANDS_IN)
#undef STANDS_IN

#define ENTRY(given, n) {.name = #given, .ours = (void *)in_place_of_##given},
static void *look_up(void *handle, const char *name);
static pw_stand_in entries[ALL] = {
    FUNCTIONS(ENTRY, ENTRY)
    {.name = "dlsym", .ours = (void *)look_up, .of_ruby = true},
};
#undef ENTRY
static pw_stand_ins stand_ins = {.entries = entries, .count = ALL};

/* ---- objects loaded later, functions looked up by name ---- */

static void *(*original_look_up)(void *, const char *);

/* Covers newly loaded objects before any function in them is called: Ruby looks up an extension's Init function with
 * dlsym. A caller that looks up a replaced function by name (FFI, Fiddle) gets the replacement, if the name resolves to
 * the same function here. NULL: the C library must answer. */
static void * __attribute__((noinline))
ours_for(void *handle, const char *name)
{
    pw_stand_ins_cover_new(&stand_ins);
    for (int n = 0; n < LOOK_UP; n++) {
        if (entries[n].original && strcmp(name, entries[n].name) == 0) {
            return original_look_up(handle, name) == entries[n].original ? entries[n].ours : NULL;
        }
    }
    return NULL;
}

#if defined(__has_attribute)
# if __has_attribute(musttail)
#  define TAIL __attribute__((musttail))
# endif
# if __has_attribute(optimize)
#  define TAILS_CALLS __attribute__((optimize("O2")))
# endif
#endif
#ifndef TAIL
# define TAIL
#endif
#ifndef TAILS_CALLS
# define TAILS_CALLS
#endif

/* dlsym finds its caller by the return address, and RTLD_NEXT depends on the caller. So this function jumps to dlsym (a
 * tail call) and does not call it. */
static void * TAILS_CALLS
look_up(void *handle, const char *name)
{
    void *ours = stand_ins.installed ? ours_for(handle, name) : NULL;
    if (ours) return ours;
    TAIL return original_look_up(handle, name);
}

/* ---- install and remove ---- */

void
pw_c_waits_install(void)
{
    if (stand_ins.installed) { /* in a forked child */
        pw_stand_ins_cover_new(&stand_ins);
        return;
    }
    for (int n = 0; n < ALL; n++) {
        entries[n].original = dlsym(RTLD_DEFAULT, entries[n].name);
        entries[n].unbound = true;
        if (n < LOOK_UP) originals[n] = (function *)entries[n].original;
    }
    original_look_up = (void *(*)(void *, const char *))entries[LOOK_UP].original;
    if (original_look_up) pw_stand_ins_install(&stand_ins);
}

void pw_c_waits_remove(void) { pw_stand_ins_remove(&stand_ins); }

#else

void pw_c_waits_install(void) {}
void pw_c_waits_remove(void) {}

#endif

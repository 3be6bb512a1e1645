/* Pitwall's own system calls, hidden from the program. They are not dispatched where the thread's system calls are
 * dispatched (Linux x86-64), and they do not change errno. */
#ifndef PITWALL_RAW_SYSCALL_H
#define PITWALL_RAW_SYSCALL_H

#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(PW_DISPATCH_OFF)
# define PW_DISPATCH 1
#else
# define PW_DISPATCH 0
#endif

#if PW_DISPATCH
/* Code in this section makes its system calls without being dispatched: collectors/syscalls/syscall_dispatch.c
 * gives the kernel the section's addresses. The linker defines both symbols. */
# define PW_UNSEEN_SECTION "pw_unseen"
extern const char __start_pw_unseen[] __attribute__((visibility("hidden"))),
    __stop_pw_unseen[] __attribute__((visibility("hidden")));

/* Returns the result, or a negative errno. Changes no vector register and no errno. async-signal-safe */
long pw_raw_syscall(long number, long a, long b, long c, long d, long e, long f) __attribute__((visibility("hidden")));
#endif

#endif

/* Asks the kernel whether a word may be read at an address. */
#ifndef PITWALL_READABLE_H
#define PITWALL_READABLE_H

#include "tools/raw_syscall.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#ifdef __linux__
# include <sys/syscall.h>
#endif

/* False for the first page, which the kernel treats as "no address". Keeps errno. Another thread may unmap the
 * address right after the answer. async-signal-safe
 *
 * Linux: rt_sigprocmask with an invalid `how` reads the set at that address and then refuses. A pipe would be shared
 * with forked children, and each child would read what the others wrote. */
static inline bool
pw_readable(uintptr_t address)
{
    enum { FIRST_PAGE = 4096 };
    if (address < FIRST_PAGE) return false;
#if PW_DISPATCH
    return pw_raw_syscall(SYS_rt_sigprocmask, ~0, (long)address, 0, 8, 0, 0) != -EFAULT;
#elif defined(__linux__)
    int saved = errno;
    bool is = syscall(SYS_rt_sigprocmask, ~0, address, NULL, (size_t)8) == 0 || errno != EFAULT;
    errno = saved;
    return is;
#else
    int ends[2], saved = errno;
    bool is = pipe(ends) == 0;
    if (is) {
        is = write(ends[1], (const void *)address, sizeof address) == (ssize_t)sizeof address;
        close(ends[0]);
        close(ends[1]);
    }
    errno = saved;
    return is;
#endif
}

#endif

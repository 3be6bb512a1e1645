#include "tools/quiet_thread.h"
#include <signal.h>
#include <stdlib.h>
#ifdef __linux__
# include <stdint.h>
# include <string.h>
# include <sys/syscall.h>
# include <unistd.h>
#endif

void
pw_reserve_heap(void)
{
    void *volatile block = malloc(1); /* volatile: otherwise the compiler removes both calls */
    free(block);
}

int
pw_start_quiet_thread(pthread_t *thread, void *(*body)(void *))
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, body, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void
pw_ask_for_short_slices(void)
{
#if defined(__linux__) && defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
    enum { SLICE_NS = 100000 };
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline,
            period; } wish;
    memset(&wish, 0, sizeof wish);
    if (syscall(SYS_sched_getattr, 0, &wish, (unsigned int)sizeof wish, 0U) != 0 || wish.policy != 0) return;
    wish.size = sizeof wish;
    wish.flags = 0;
    wish.runtime = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &wish, 0U); /* the kernel may refuse this */
#endif
}

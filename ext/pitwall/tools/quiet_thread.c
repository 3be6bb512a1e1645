#include "tools/quiet_thread.h"
#include <signal.h>
#include <stdlib.h>

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

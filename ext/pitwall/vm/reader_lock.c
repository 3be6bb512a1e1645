#include "vm/reader_lock.h"
#include <pthread.h>

/* The lock is held for less time than falling asleep takes. So a thread that finds the lock taken tries for a while. */
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

void pw_reader_lock(void) { pthread_mutex_lock(&lock); }
void pw_reader_unlock(void) { pthread_mutex_unlock(&lock); }

void
pw_reader_reset(void)
{
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    static const pthread_mutex_t fresh = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    lock = fresh;
#else
    pthread_mutex_init(&lock, NULL);
#endif
}

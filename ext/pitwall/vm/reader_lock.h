/* The lock for reading stacks from outside, and for what must not change meanwhile. Held for microseconds, and
 * never around a call into Ruby. A thread that takes the session's lock as well takes the session's lock first. */
#ifndef PITWALL_READER_LOCK_H
#define PITWALL_READER_LOCK_H

void pw_reader_lock(void);
void pw_reader_unlock(void);
/* In a forked child. The thread that held the lock did not come along. */
void pw_reader_reset(void);

/* Waits until no stack is being read from outside. */
static inline void
pw_reader_pass(void)
{
    pw_reader_lock();
    pw_reader_unlock();
}

#endif

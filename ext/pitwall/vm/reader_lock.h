/* The lock for reading stacks from outside, and for data that must not change during such a read. The lock is held
 * for microseconds, and never around a call into Ruby. A thread that takes both the session's lock and this lock
 * takes the session's lock first. */
#ifndef PITWALL_READER_LOCK_H
#define PITWALL_READER_LOCK_H

void pw_reader_lock(void);
void pw_reader_unlock(void);
/* For a forked child. The thread that held the lock does not exist in the child. */
void pw_reader_reset(void);

/* Waits until no stack is being read from outside. */
static inline void
pw_reader_pass(void)
{
    pw_reader_lock();
    pw_reader_unlock();
}

#endif

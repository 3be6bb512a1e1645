#ifndef FASTBOOT_OUTSIDE_THREAD_H
#define FASTBOOT_OUTSIDE_THREAD_H

/* Starts a thread that Ruby does not know. It gets no signals, and has a stack of 64 KiB. Returns 0 where the system
 * gives none. */
int fb_start_thread(void *(*run)(void *));

#endif

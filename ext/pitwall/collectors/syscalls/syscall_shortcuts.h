/* Replaces the C library's functions for the most frequent file-system calls while calls are recorded. A replacement
 * records the call without a SIGSYS, which takes the kernel a few microseconds. Calls of functions that are not
 * replaced are recorded through SIGSYS. */
#ifndef PITWALL_SYSCALL_SHORTCUTS_H
#define PITWALL_SYSCALL_SHORTCUTS_H

#include <stdbool.h>

/* Makes loaded objects call Pitwall's functions. Call while SIGSYS is handled and the calling thread is not armed. */
void pw_shortcuts_install(void);
/* Makes loaded objects call the C library's functions again. */
void pw_shortcuts_remove(void);

#endif

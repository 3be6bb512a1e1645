/* The C library's functions of the most frequent file-system calls, stood in for while calls are recorded: what
 * they would do by way of a SIGSYS, which takes the kernel some microseconds, is done without one. Only a shortcut:
 * what is not stood in for is seen all the same. */
#ifndef PITWALL_SYSCALL_SHORTCUTS_H
#define PITWALL_SYSCALL_SHORTCUTS_H

#include <stdbool.h>

/* Has loaded objects call our functions instead of the C library's. SIGSYS must be handled, the calling thread not
 * armed. */
void pw_shortcuts_install(void);
/* The C library's again. */
void pw_shortcuts_remove(void);

#endif

#ifndef FASTBOOT_MEMORY_LIMITS_H
#define FASTBOOT_MEMORY_LIMITS_H

#include <stdint.h>

/* Does the process have a limit of its memory (`ulimit -v` or `-d`)? */
int fb_has_memory_limit(void);

/* Half of what the machine has, or the process's control groups allow, in bytes. */
uint64_t fb_most_memory(void);

#endif

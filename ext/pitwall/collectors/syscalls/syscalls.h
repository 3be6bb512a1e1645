/* The collector of file-system calls. */
#ifndef PITWALL_SYSCALLS_H
#define PITWALL_SYSCALLS_H

#include "session/modules.h"

extern const pw_module pw_syscalls;

#endif

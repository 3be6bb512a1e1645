/* Rows of system calls on their way from the ring to the file; for the drain, under the session's lock. */
#ifndef PITWALL_SYSCALLS_H
#define PITWALL_SYSCALLS_H

#include "session/collector.h"
#include "collectors/syscalls/syscall_after.h"

extern const pw_collector pw_syscalls;

void pw_syscalls_take(const pw_syscall_row *row);
bool pw_syscalls_full(void); /* as many rows as a chunk holds: time to write them */

void Init_pitwall_syscalls(VALUE native);

#endif

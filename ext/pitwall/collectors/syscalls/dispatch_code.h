/* Assembler code that makes dispatched system calls. The kernel does not dispatch calls made in its section. */
#ifndef PITWALL_DISPATCH_CODE_H
#define PITWALL_DISPATCH_CODE_H

#include "collectors/syscalls/syscall_frame.h"
#include "tools/hidden.h"

#if PW_DISPATCH

enum { PW_TWINS = 1024, PW_MAKERS = 64, PW_MAKER_SIZE = 32, PW_RED_ZONE = 128 };

/* Return addresses: twin number i of a `syscall` instruction continues behind the original instruction. Makers are
 * twins of calls that make a process. */
extern PW_HIDDEN _Atomic uint64_t pw_twin_returns[PW_TWINS], pw_maker_returns[PW_MAKERS];

/* Number of calls in progress in this thread that make a process or a thread. Only the parent decrements the number
 * when the call returns. So in a child the number is not 0 before the child runs Ruby. This also holds for a child
 * that shares the parent's memory and thread-local storage. */
extern PW_HIDDEN __thread uint32_t pw_dispatch_making __attribute__((tls_model("initial-exec")));

extern PW_HIDDEN const char pw_twins[], pw_makers[], pw_go_on_plain[], pw_go_on_recorded[], pw_go_on_ending[],
    pw_return_from_signal[];

/* pw_go_on_ending calls this function before it makes the system call. */
extern PW_HIDDEN void (*pw_dispatch_ending)(pw_call_frame *call);

/* Makes the call, and reads the clock before and after the call. */
void pw_call_recorded(pw_call_frame *call) PW_HIDDEN;

#endif

#endif

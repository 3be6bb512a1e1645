/* The code that dispatched system calls are made in: assembler, in the section that the kernel leaves alone. */
#ifndef PITWALL_DISPATCH_CODE_H
#define PITWALL_DISPATCH_CODE_H

#include "collectors/syscalls/syscall_frame.h"
#include "tools/hidden.h"

#if PW_DISPATCH

enum { PW_TWINS = 1024, PW_MAKERS = 64, PW_MAKER_SIZE = 32, PW_RED_ZONE = 128 };

/* Where twin number i of a `syscall` instruction goes on: behind the original. Makers are twins of calls that make
 * a process. */
extern PW_HIDDEN _Atomic uint64_t pw_twin_returns[PW_TWINS], pw_maker_returns[PW_MAKERS];

/* How many calls that make a process or a thread the thread is in; only it itself leaves them, so in a child, even
 * one in the same memory and with the same thread-local storage, it is never 0 before that runs Ruby. */
extern PW_HIDDEN __thread uint32_t pw_dispatch_making __attribute__((tls_model("initial-exec")));

extern PW_HIDDEN const char pw_twins[], pw_makers[], pw_go_on_plain[], pw_go_on_recorded[], pw_go_on_ending[],
    pw_return_from_signal[];

/* What pw_go_on_ending calls before the call. */
extern PW_HIDDEN void (*pw_dispatch_ending)(pw_call_frame *call);

/* Makes the call between two readings of the clock. */
void pw_call_recorded(pw_call_frame *call) PW_HIDDEN;

#endif

#endif

/* One system call on its way. */
#ifndef PITWALL_SYSCALL_FRAME_H
#define PITWALL_SYSCALL_FRAME_H

#include "tools/raw_syscall.h"
#include <stdint.h>

/* On the thread's own stack, below what the program may use there. Offsets are known to the assembler. */
typedef struct {
    uint64_t arguments[6];
    uint64_t number;
    uint64_t start, end;   /* ticks of the processor's counter, right around the call */
    int64_t result;
    uint64_t rbx;
    void *thread;          /* pw_thread or NULL, by `before` */
    uint32_t serial;       /* of its stack, by `before` */
    uint32_t generation;
    uint64_t scratch[4];   /* what the kernel reads instead of the program's own */
    uint64_t return_address;
} pw_call_frame;

#endif

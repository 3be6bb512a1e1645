/* The frame of one system call that is being made. */
#ifndef PITWALL_SYSCALL_FRAME_H
#define PITWALL_SYSCALL_FRAME_H

#include "tools/raw_syscall.h"
#include <stdint.h>

/* Lies on the thread's own stack, below the red zone. The assembler code uses the offsets of its fields. */
typedef struct {
    uint64_t arguments[6];
    uint64_t number;
    uint64_t start, end;   /* ticks of the processor's counter, right around the call */
    int64_t result;
    uint64_t rbx;
    void *thread;          /* pw_thread or NULL, by `before` */
    uint32_t serial;       /* of its stack, by `before` */
    uint32_t generation;
    uint64_t scratch[4];   /* arguments that the kernel reads in place of the program's */
    uint64_t return_address;
} pw_call_frame;

#endif

/* Counts a finished call and puts a row for the call into the ring. Runs right after the call, in the program's own
 * thread. */
#ifndef PITWALL_SYSCALL_AFTER_H
#define PITWALL_SYSCALL_AFTER_H

#include <stdatomic.h>
#include "output/record_kinds.h"
#include "output/ring.h"
#include "collectors/syscalls/syscall_frame.h"
#include "collectors/syscalls/syscall_table.h"

enum { PW_NO_PATH = 0xffff };

typedef struct {
    pw_record_header header;
    void *thread;         /* pw_thread, or NULL */
    uint64_t start, end;  /* ticks */
    int64_t result;       /* the call's result, or a negative errno */
    uint32_t serial;      /* serial number of the thread's stack */
    int32_t fd;           /* the descriptor argument; -1: none */
    uint32_t flags;
    uint16_t number;
    uint16_t sizes[4];    /* bytes of path and path2 (PW_NO_PATH: none),
                           * and of the folders that the paths start from (0: the working directory).
                           * After a change of working directory, the first folder is the new working directory. */
    char bytes[];         /* the four texts, in the order of `sizes` */
} pw_syscall_row;

typedef struct { _Atomic uint64_t calls, errors, ticks; } pw_syscall_count;

extern pw_syscall_count pw_syscall_counts[PW_SYSCALLS];
extern _Atomic uint32_t pw_syscall_generation; /* number of the recording; 0: none runs */
extern _Atomic int pw_syscall_at_work;         /* handlers and pw_syscall_after now running, plus any left by a jump */
extern _Atomic uint64_t pw_syscall_lost;       /* rows lost: the ring stayed full while they waited */
extern _Atomic uint64_t pw_syscall_no_room_since;
extern _Atomic uint64_t pw_syscall_waits;      /* rows that had to wait for room in the ring */
extern pw_ring *pw_syscall_ring;               /* NULL: calls are counted only */
extern bool pw_syscall_steady;                 /* the processor's counter is usable as a clock */

/* Reads a byte 3,072 bytes below the stack pointer, so that a stack about to overflow overflows here. Ruby then
 * raises an exception and leaves this function by a jump. Later the thread would already be counted in
 * pw_syscall_at_work, and pw_dispatch_stop would wait for a handler that never ends. 3,072 bytes is more than
 * the code below uses of the stack. 3,072 bytes is less than a page, or Ruby would not recognize the overflow. The
 * macro does not write: on a signal's alternate stack, the byte may belong to other data. */
#define PW_SYSCALL_MEET_STACK_END() __asm__ volatile("testb $0, -3072(%%rsp)" : : : "memory", "cc")

/* The functions below use general registers only. async-signal-safe */
uint64_t pw_syscall_clock(void); /* ns; used where the processor's counter is no clock */
void pw_syscall_after(pw_call_frame *call) __attribute__((visibility("hidden")));
/* Waits 0.1 ms for the drain if the ring is full. False: stop waiting. No recording runs, or no thread has found room
 * in the ring for 2 s. */
bool pw_syscall_pause(void);

#endif

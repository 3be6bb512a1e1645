/* What a call came to: counted, and put into the ring as a row, right behind it in the program's own thread. */
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
    int64_t result;       /* or a negative errno */
    uint32_t serial;      /* of the thread's stack */
    int32_t fd;           /* the descriptor it is about; -1: none */
    uint32_t flags;
    uint16_t number;
    uint16_t sizes[4];    /* of path, path2 (PW_NO_PATH: none),
        and of the folders that they start from (0: the working directory).
                           * After a change of working directory the first folder is the new one. */
    char bytes[];         /* in that order */
} pw_syscall_row;

typedef struct { _Atomic uint64_t calls, errors, ticks; } pw_syscall_count;

extern pw_syscall_count pw_syscall_counts[PW_SYSCALLS];
extern _Atomic uint32_t pw_syscall_generation; /* 0: rows of no recording */
extern _Atomic int pw_syscall_at_work;         /* handlers and what follows calls, right now; and who left by a jump */
extern _Atomic uint64_t pw_syscall_lost;       /* rows that found no room, though they waited */
extern _Atomic uint64_t pw_syscall_no_room_since;
extern _Atomic uint64_t pw_syscall_waits;      /* for room */
extern pw_ring *pw_syscall_ring;               /* NULL: calls are counted only */
extern bool pw_syscall_steady;                 /* the processor's counter is a clock */

/* Has a stack that ends soon end now: Ruby leaves from there with an exception, and nobody is to wait for what
 * never ends. More than is used of the stack below, and less than a page, or Ruby would not know the end. It only
 * reads: on a signal's own stack somebody else's may lie there. */
#define PW_SYSCALL_MEET_STACK_END() __asm__ volatile("testb $0, -3072(%%rsp)" : : : "memory", "cc")

/* General registers only. async-signal-safe */
uint64_t pw_syscall_clock(void); /* ns, where the counter is none */
void pw_syscall_after(pw_call_frame *call) __attribute__((visibility("hidden")));
/* The ring is full: waits a moment for the drain. False: not any more, nobody has found room for two seconds. */
bool pw_syscall_pause(void);

#endif

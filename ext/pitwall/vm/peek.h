/* Reading from outside what may be gone meanwhile: the kernel copies, and says when nothing is there. A fault would
 * end the program, and on some Rubies pages of the heap are closed for a while during compaction.
 *
 * What is needed of objects again and again is kept. One thread at a time, with the reader lock held. */
#ifndef PITWALL_PEEK_H
#define PITWALL_PEEK_H

#include "vm/vm_compat.h"
#include <stddef.h>

/* To be called first, and again after a fork. 0, or the errno with which the kernel refuses. */
int pw_peek_init(void);

/* Copies `n` bytes of this process; false when they are not there. */
bool pw_peek(const void *from, void *to, size_t n);

/* Two pieces in one call. */
typedef struct { const void *from; void *to; size_t n; } pw_piece;
bool pw_peek_both(const pw_piece pieces[2]);

/* What an internal object is. */
typedef struct {
    VALUE word;
    uint32_t generation;
    int8_t imemo;         /* its sub-type, or -1: none that is */
    int8_t method;        /* of a method entry: its kind, or -1 */
    uint32_t size;        /* of an iseq: its instructions, in words */
    VALUE body, encoded;  /* of an iseq */
    VALUE sites;          /* of an iseq: its call sites, and how many */
    uint32_t site_count;
    VALUE second;         /* its second word */
} pw_object_seen;

/* Never NULL; valid until the next call. holds reader lock */
const pw_object_seen *pw_object_look(VALUE word);

#endif

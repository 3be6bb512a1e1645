/* Reads memory from outside, while another thread may free or unmap the memory. The kernel copies the bytes, and
 * reports if there is nothing at the address. A direct read could fault, and a fault would end the program. On some
 * Rubies pages of the heap are closed for a while during compaction.
 *
 * Data of objects that is needed again and again is kept. One thread at a time uses these functions, with the reader
 * lock held. */
#ifndef PITWALL_PEEK_H
#define PITWALL_PEEK_H

#include "vm/vm_compat.h"
#include <stddef.h>

/* Must be called first, and again after a fork. Returns 0, or the errno with which the kernel refuses. */
int pw_peek_init(void);

/* Copies `n` bytes of this process. False: the bytes are not there. */
bool pw_peek(const void *from, void *to, size_t n);

/* Two pieces of memory, copied in one call. */
typedef struct { const void *from; void *to; size_t n; } pw_piece;
bool pw_peek_both(const pw_piece pieces[2]);

/* Describes an internal object. */
typedef struct {
    VALUE word;
    uint32_t generation;
    int8_t imemo;         /* sub-type; -1: the word is no internal object */
    int8_t method;        /* of a method entry: its type; else -1 */
    uint32_t size;        /* of an iseq: length of its instructions, in words */
    VALUE body, encoded;  /* of an iseq */
    VALUE sites;          /* of an iseq: its call sites; site_count: how many */
    uint32_t site_count;
    VALUE second;         /* the object's second word */
} pw_object_seen;

/* Never NULL; valid until the next call. holds reader lock */
const pw_object_seen *pw_object_look(VALUE word);

#endif

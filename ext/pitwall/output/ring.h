/* A lock-free ring from many threads' signal handlers to one drain thread.
 *
 * A producer reserves a record with one compare-and-swap, writes the record, and commits it by storing its size. The
 * consumer stops at the first record that is not committed. No function of a producer allocates, locks or waits, so a
 * signal handler may call it. When the ring is full, the producer gets NULL and counts a loss. Nothing is
 * overwritten. */
#ifndef PITWALL_RING_H
#define PITWALL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t size; /* bytes including this header; 0 until committed */
    uint8_t kind;          /* 0: padding; others: the ring's user defines them (record_kinds.h) */
    uint8_t state;
    uint16_t captures;
} pw_record_header;

_Static_assert(sizeof(pw_record_header) == 8, "records are counted in units of their header");

typedef struct {
    _Atomic uint64_t head; /* next byte to reserve */
    uint64_t size;         /* a power of two */
    uint8_t *data;
    uint8_t apart[64];     /* avoids false sharing: producers read the fields above, the consumer writes `tail` */
    _Atomic uint64_t tail; /* next byte to consume */
} pw_ring;

/* Prefetches the place of the next record, which the consumer's core touched last. Called shortly before a write. */
static inline void
pw_ring_expect(pw_ring *ring, uint32_t bytes)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    for (uint32_t at = 0; at < bytes; at += 64) __builtin_prefetch(ring->data + ((head + at) & (ring->size - 1)), 1);
}

bool pw_ring_init(pw_ring *ring, uint64_t size);
void pw_ring_free(pw_ring *ring);

/* Room for a record of `bytes` (rounded up to 8), or NULL when the ring is full. async-signal-safe */
pw_record_header *pw_ring_reserve(pw_ring *ring, uint32_t bytes);
/* async-signal-safe */
void pw_ring_commit(pw_record_header *record, uint32_t bytes);

/* pw_ring_peek returns the oldest committed record, or NULL. pw_ring_consume gives the record back. One consumer
 * only. */
pw_record_header *pw_ring_peek(pw_ring *ring);
void pw_ring_consume(pw_ring *ring, pw_record_header *record);

/* The committed record at `offset` bytes after the tail, without consuming it. Advances the offset. */
pw_record_header *pw_ring_scan(pw_ring *ring, uint64_t *offset);

#endif

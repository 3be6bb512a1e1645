/* A lock-free ring from many threads' signal handlers to one drain thread.
 *
 * Producers reserve with one compare-and-swap, write, and commit by storing the size; the consumer stops at the first
 * record that is not committed. Nothing here allocates, locks or waits, so it may be used in a signal handler.
 * When the ring is full the producer is told and counts a loss; nothing is overwritten. */
#ifndef PITWALL_RING_H
#define PITWALL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t size; /* bytes including this header; 0 until committed */
    uint8_t kind;          /* 0 is padding, the rest is the user's */
    uint8_t state;
    uint16_t captures;
} pw_record_header;

_Static_assert(sizeof(pw_record_header) == 8, "records are counted in units of their header");

typedef struct {
    _Atomic uint64_t head; /* next byte to reserve */
    uint64_t size;         /* a power of two */
    uint8_t *data;
    uint8_t apart[64];     /* the consumer's counter lies in another cache line than what producers read */
    _Atomic uint64_t tail; /* next byte to consume */
} pw_ring;

/* Soon a record will be written: has its place fetched, as the consumer's core was the last to touch it. */
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

/* The oldest committed record, or NULL; and giving it back. One consumer only. */
pw_record_header *pw_ring_peek(pw_ring *ring);
void pw_ring_consume(pw_ring *ring, pw_record_header *record);

/* The committed record after `offset` bytes from the tail, for looking without consuming; advances the offset. */
pw_record_header *pw_ring_scan(pw_ring *ring, uint64_t *offset);

#endif

#include "tools/general_registers.h"
#include "output/ring.h"
#include <string.h>
#include <sys/mman.h>

#define ROUND8(n) (((n) + 7u) & ~7u)

bool
pw_ring_init(pw_ring *ring, uint64_t size)
{
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return false;
    ring->data = data;
    ring->size = size;
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    return true;
}

void
pw_ring_free(pw_ring *ring)
{
    if (ring->data) munmap(ring->data, ring->size);
    ring->data = NULL;
}

pw_record_header *
pw_ring_reserve(pw_ring *ring, uint32_t bytes)
{
    uint64_t need = ROUND8(bytes);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    for (;;) {
        uint64_t offset = head & (ring->size - 1);
        uint64_t pad = offset + need > ring->size ? ring->size - offset : 0;
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head + pad + need - tail > ring->size) return NULL;
        if (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + pad + need,
                                                   memory_order_acq_rel, memory_order_relaxed)) continue;
        if (pad) { /* a record must be contiguous: pad to the end, and begin at 0 */
            pw_record_header *filler = (pw_record_header *)(ring->data + offset);
            filler->kind = 0;
            pw_ring_commit(filler, (uint32_t)pad);
            offset = 0;
        }
        return (pw_record_header *)(ring->data + offset);
    }
}

void
pw_ring_commit(pw_record_header *record, uint32_t bytes)
{
    atomic_store_explicit(&record->size, ROUND8(bytes), memory_order_release);
}

pw_record_header *
pw_ring_scan(pw_ring *ring, uint64_t *offset)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    for (;;) {
        if (tail + *offset >= atomic_load_explicit(&ring->head, memory_order_acquire)) return NULL;
        pw_record_header *record = (pw_record_header *)(ring->data + ((tail + *offset) & (ring->size - 1)));
        uint32_t size = atomic_load_explicit(&record->size, memory_order_acquire);
        if (size == 0) return NULL;
        *offset += size;
        if (record->kind != 0) return record;
    }
}

void
pw_ring_consume(pw_ring *ring, pw_record_header *record)
{
    uint32_t size = atomic_load_explicit(&record->size, memory_order_relaxed);
    /* The whole record is zeroed. The next headers may lie anywhere in it, and must read as not committed. */
    memset(record, 0, size);
    atomic_fetch_add_explicit(&ring->tail, size, memory_order_release);
}

pw_record_header *
pw_ring_peek(pw_ring *ring)
{
    for (;;) {
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        if (tail == atomic_load_explicit(&ring->head, memory_order_acquire)) return NULL;
        pw_record_header *record = (pw_record_header *)(ring->data + (tail & (ring->size - 1)));
        if (atomic_load_explicit(&record->size, memory_order_acquire) == 0) return NULL;
        if (record->kind != 0) return record;
        pw_ring_consume(ring, record);
    }
}

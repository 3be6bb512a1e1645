/* A growing byte buffer with the recording's integer encoding. Used by the drain and by naming, never in a handler. */
#ifndef PITWALL_BUFFER_H
#define PITWALL_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *data;
    size_t size, capacity;
} pw_buffer;

/* True: memory was refused since the recording began. Buffers and tables may lack parts from then on, so nothing
 * more is written or entered. The program goes on, and the recording says ENOMEM (writer.c). async-signal-safe */
extern _Atomic bool pw_memory_refused;
static inline void pw_refuse_memory(void) { atomic_store_explicit(&pw_memory_refused, true, memory_order_relaxed); }
static inline bool pw_lacks_memory(void) { return atomic_load_explicit(&pw_memory_refused, memory_order_relaxed); }

static inline void *
pw_noted(void *memory)
{
    if (!memory) pw_refuse_memory();
    return memory;
}

/* NULL: there is no memory. */
static inline uint8_t *
pw_buffer_room(pw_buffer *b, size_t n)
{
    if (b->size + n > b->capacity) {
        size_t capacity = b->capacity ? b->capacity * 2 : 256;
        while (capacity < b->size + n) capacity *= 2;
        uint8_t *larger = pw_noted(realloc(b->data, capacity));
        if (!larger) return NULL;
        b->data = larger;
        b->capacity = capacity;
    }
    return b->data + b->size;
}

static inline void
pw_buffer_put(pw_buffer *b, const void *bytes, size_t n)
{
    if (n == 0) return;
    uint8_t *to = pw_buffer_room(b, n);
    if (!to) return;
    memcpy(to, bytes, n);
    b->size += n;
}

/* An unsigned BER-compressed integer: base 128, most significant group first, as Ruby's pack("w"). */
static inline void
pw_buffer_int(pw_buffer *b, uint64_t value)
{
    uint8_t *to = pw_buffer_room(b, 10);
    if (!to) return;
    int groups = 1;
    for (uint64_t rest = value >> 7; rest; rest >>= 7) groups++;
    for (int i = groups - 1; i >= 0; i--) {
        *to++ = (uint8_t)((value >> (7 * i)) & 0x7f) | (i ? 0x80 : 0);
    }
    b->size += (size_t)groups;
}

/* A column: its byte length, then its bytes. */
static inline void
pw_buffer_column(pw_buffer *b, const pw_buffer *column)
{
    pw_buffer_int(b, column->size);
    pw_buffer_put(b, column->data, column->size);
}

/* One row: a value for each column. */
static inline void
pw_buffer_row(pw_buffer *columns, const uint64_t *values, int n)
{
    for (int i = 0; i < n; i++) pw_buffer_int(&columns[i], values[i]);
}

/* A hash of a row of counters, which shows whether any counter has changed. A sum would not show that: one counter
 * may fall as another rises. */
static inline uint64_t
pw_fingerprint(const uint64_t *values, int n)
{
    uint64_t print = (uint64_t)n;
    for (int i = 0; i < n; i++) print = (print ^ values[i]) * 0x9e3779b97f4a7c15u + (print >> 29);
    return print;
}

static inline void pw_buffer_clear(pw_buffer *b) { b->size = 0; }

static inline void
pw_buffer_free(pw_buffer *b)
{
    free(b->data);
    *b = (pw_buffer){0};
}

static inline void
pw_buffers_free(pw_buffer *buffers, int n)
{
    for (int i = 0; i < n; i++) pw_buffer_free(&buffers[i]);
}

#endif

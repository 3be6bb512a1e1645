/* Reads a section of call frame information. No number in it is trusted: what lies beyond the end is read as 0, and
 * `bad` is set. */
#ifndef PITWALL_CFI_BYTES_H
#define PITWALL_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
    bool bad;
} pw_cfi_bytes;

static inline size_t pw_bytes_left(const pw_cfi_bytes *b) { return (size_t)(b->end - b->at); }

static inline const uint8_t *
pw_bytes_skip(pw_cfi_bytes *b, uint64_t n)
{
    const uint8_t *from = b->at;
    if (n > pw_bytes_left(b)) {
        b->bad = true;
        b->at = b->end;
        return NULL;
    }
    b->at += n;
    return from;
}

#define PW_BYTES_READER(name, type) \
    static inline type name(pw_cfi_bytes *b) \
    { \
        type value = 0; \
        const uint8_t *from = pw_bytes_skip(b, sizeof value); \
        if (from) memcpy(&value, from, sizeof value); \
        return value; \
    }
PW_BYTES_READER(pw_bytes_u8, uint8_t)
PW_BYTES_READER(pw_bytes_u16, uint16_t)
PW_BYTES_READER(pw_bytes_u32, uint32_t)
PW_BYTES_READER(pw_bytes_u64, uint64_t)

static inline uint64_t
pw_bytes_uleb(pw_cfi_bytes *b)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = pw_bytes_u8(b);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    b->bad = true;
    return 0;
}

static inline int64_t
pw_bytes_sleb(pw_cfi_bytes *b)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = pw_bytes_u8(b);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        if ((byte & 0x40) && shift + 7 < 64) value |= ~(uint64_t)0 << (shift + 7);
        return (int64_t)value;
    }
    b->bad = true;
    return 0;
}

/* A pointer in one of the encodings that .eh_frame uses (DW_EH_PE_*). `address` is where b->at is in memory.
 * Encodings that need another section's address, or a read of memory, set `bad`. */
static inline uintptr_t
pw_bytes_pointer(pw_cfi_bytes *b, uint8_t encoding, uintptr_t address)
{
    enum { OMIT = 0xff, RELATIVE_TO_ITSELF = 0x10 };
    uint64_t value = 0;
    if (encoding == OMIT) return 0;
    switch (encoding & 0x0f) {
      case 0x0: case 0x4: case 0xc: value = pw_bytes_u64(b); break;
      case 0x1: value = pw_bytes_uleb(b); break;
      case 0x2: value = pw_bytes_u16(b); break;
      case 0x3: value = pw_bytes_u32(b); break;
      case 0x9: value = (uint64_t)pw_bytes_sleb(b); break;
      case 0xa: value = (uint64_t)(int16_t)pw_bytes_u16(b); break;
      case 0xb: value = (uint64_t)(int32_t)pw_bytes_u32(b); break;
      default: b->bad = true;
    }
    if ((encoding & 0xf0) == RELATIVE_TO_ITSELF) value += address;
    else if (encoding & 0xf0) b->bad = true;
    return (uintptr_t)value;
}

#endif

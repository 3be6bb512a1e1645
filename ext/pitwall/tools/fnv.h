/* The hash FNV-1a with 64 bits (Fowler, Noll, Vo: http://www.isthe.com/chongo/tech/comp/fnv/). It is fast for short
 * texts. */
#ifndef PITWALL_FNV_H
#define PITWALL_FNV_H

#include <stddef.h>
#include <stdint.h>

#define PW_FNV_START 0xcbf29ce484222325u

static inline uint64_t pw_fnv_byte(uint64_t hash, uint8_t byte) { return (hash ^ byte) * 0x100000001b3u; }

/* Continues a hash with these bytes; a new hash begins with PW_FNV_START. */
static inline uint64_t
pw_fnv(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) hash = pw_fnv_byte(hash, at[i]);
    return hash;
}

#endif

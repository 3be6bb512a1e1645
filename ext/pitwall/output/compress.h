/*
 * LZ4 blocks and CRC-32 for the chunks of a recording (doc/record-format.md).
 *
 * The extension has its own LZ4 code and depends on no gem or library. A library loaded into the measured process would
 * become a part of the measurement. No function here allocates, locks or calls Ruby, so the drain may call all of them.
 */
#ifndef PITWALL_COMPRESS_H
#define PITWALL_COMPRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 4096 entries of 4 bytes: the table and the bytes being compressed stay in the L1 cache together. */
#define PW_LZ4_HASH_BITS 12
#define PW_LZ4_HASH_SIZE (1u << PW_LZ4_HASH_BITS)

/* The largest block that other LZ4 implementations accept. Both functions refuse larger blocks. */
#define PW_LZ4_MAX_RAW 0x7E000000u

/* The largest possible size of a block of `raw` bytes, in bytes. 0: `raw` is too large for one block. */
size_t pw_lz4_bound(size_t raw);

/*
 * Compresses `n` bytes into at most `cap` bytes. `hash_table` is scratch of PW_LZ4_HASH_SIZE entries, reset here.
 * Returns the number of bytes written. Returns 0 when the block would not fit or would not be smaller than `n`: then
 * dst's content is undefined, and the bytes should be stored plain. A result is always smaller than `n`, so a `cap`
 * of `n` is always enough.
 */
size_t pw_lz4_compress(const uint8_t *src, size_t n, uint8_t *dst, size_t cap, uint32_t *hash_table);

/*
 * Decompresses a block of exactly `raw` bytes. Returns `raw`, or -1 for a malformed block. Never writes outside
 * dst[0, raw). The input may be hostile.
 */
ssize_t pw_lz4_decompress(const uint8_t *src, size_t n, uint8_t *dst, size_t raw);

/* Builds the CRC tables. Must be called before pw_crc32. May be called again, from any thread, without effect. */
void pw_crc32_init(void);

/* The same as zlib's crc32. `seed`: 0, or the CRC of the preceding bytes. */
uint32_t pw_crc32(uint32_t seed, const void *p, size_t n);

#endif

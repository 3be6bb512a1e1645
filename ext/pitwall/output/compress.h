/*
 * LZ4 blocks and CRC-32 for the chunks of a recording (doc/record-format.md).
 *
 * Own code, because the extension may depend on neither a gem nor a library: what it loads into the measured process
 * would be part of the measurement. Nothing here allocates, locks or calls Ruby, so the drain thread may use all of it.
 */
#ifndef PITWALL_COMPRESS_H
#define PITWALL_COMPRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 4096 entries of 4 bytes: the table and the bytes being compressed stay in the L1 cache together. */
#define PW_LZ4_HASH_BITS 12
#define PW_LZ4_HASH_SIZE (1u << PW_LZ4_HASH_BITS)

/* The largest block that the format's other implementations take; both functions refuse more. */
#define PW_LZ4_MAX_RAW 0x7E000000u

/* Bytes that the worst block of `raw` bytes may take; 0 when `raw` is too large to be one block. */
size_t pw_lz4_bound(size_t raw);

/*
 * Compresses `n` bytes into at most `cap`; `hash_table` is scratch of PW_LZ4_HASH_SIZE entries, reset inside.
 * Returns the bytes written, or 0 when the block would not fit or not be smaller than `n` (then store it plain);
 * dst's content is undefined in that case. As the block is always smaller than `n`, a `cap` of `n` loses nothing.
 */
size_t pw_lz4_compress(const uint8_t *src, size_t n, uint8_t *dst, size_t cap, uint32_t *hash_table);

/*
 * Decompresses a block that holds exactly `raw` bytes. Returns `raw`, or -1 for anything malformed, having written
 * nothing outside dst[0, raw). The input may be hostile.
 */
ssize_t pw_lz4_decompress(const uint8_t *src, size_t n, uint8_t *dst, size_t raw);

/* Builds the CRC tables. Call before any pw_crc32; calling again, from any thread, changes nothing. */
void pw_crc32_init(void);

/* zlib's crc32: start with seed 0, or continue with the CRC of the bytes before. */
uint32_t pw_crc32(uint32_t seed, const void *p, size_t n);

#endif

#include "output/compress.h"

#include <stdbool.h>
#include <string.h>

/*
 * A block is a list of sequences: token, literal length, literals, offset (u16 LE), match length. The token's high half
 * is the literal length. Its low half is the match length - 4. 15 means that more length bytes follow: each is added,
 * up to and including the first that is not 255. The last sequence ends after its literals. Decoders copy in wide steps
 * near the end, so encoders follow two rules: the last 5 bytes are literals, and the last match starts at least 12
 * bytes before the end.
 */
enum { MIN_MATCH = 4, LAST_LITERALS = 5, MATCH_MARGIN = 12, MAX_OFFSET = 65535, NIBBLE = 15 };

/* The search step grows by 1 byte for every 2^SKIP_SHIFT consecutive misses, so incompressible data is skipped fast. */
enum { SKIP_SHIFT = 6 };

size_t pw_lz4_bound(size_t raw)
{
    return raw > PW_LZ4_MAX_RAW ? 0 : raw + raw / 255 + 16;
}

/* Native byte order is enough: the words are only compared and hashed. */
static inline uint32_t load32(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Multiplicative hashing by a prime near 2^32 / golden ratio. The product's top bits depend on all four bytes. */
static inline uint32_t slot_of(uint32_t word)
{
    return (word * 2654435761u) >> (32 - PW_LZ4_HASH_BITS);
}

/* The number of equal bytes at the start of a and b, at most `limit`. */
static size_t common_length(const uint8_t *a, const uint8_t *b, size_t limit)
{
    size_t len = 0;
    while (len + 8 <= limit && memcmp(a + len, b + len, 8) == 0) len += 8;
    while (len < limit && a[len] == b[len]) len++;
    return len;
}

typedef struct {
    uint8_t *bytes;
    size_t used, cap;
} pw_output;

/* The number of extra bytes for a length, beyond its half of the token. */
static size_t extra_bytes(size_t length)
{
    return length < NIBBLE ? 0 : (length - NIBBLE) / 255 + 1;
}

static void put_extra(pw_output *out, size_t length)
{
    if (length < NIBBLE) return;
    for (length -= NIBBLE; length >= 255; length -= 255) out->bytes[out->used++] = 255;
    out->bytes[out->used++] = (uint8_t)length;
}

/* Writes one sequence. match_len 0: the last sequence, without a match. False: no room. */
static bool put_sequence(pw_output *out, const uint8_t *literals, size_t lit_len, size_t offset, size_t match_len)
{
    size_t match_code = match_len ? match_len - MIN_MATCH : 0;
    size_t need = 1 + extra_bytes(lit_len) + lit_len + (match_len ? 2 + extra_bytes(match_code) : 0);
    if (need > out->cap - out->used) return false;

    size_t high = lit_len < NIBBLE ? lit_len : NIBBLE, low = match_code < NIBBLE ? match_code : NIBBLE;
    out->bytes[out->used++] = (uint8_t)(high << 4 | low);
    put_extra(out, lit_len);
    memcpy(out->bytes + out->used, literals, lit_len);
    out->used += lit_len;
    if (match_len) {
        out->bytes[out->used++] = (uint8_t)offset;
        out->bytes[out->used++] = (uint8_t)(offset >> 8);
        put_extra(out, match_code);
    }
    return true;
}

size_t pw_lz4_compress(const uint8_t *src, size_t n, uint8_t *dst, size_t cap, uint32_t *hash_table)
{
    if (n == 0 || n > PW_LZ4_MAX_RAW) return 0;
    pw_output out = { dst, 0, cap < n ? cap : n - 1 };

    /* An empty entry also means position 0. That is harmless: the bytes of every candidate are compared. The search
       starts at 1, so that every candidate lies before the current position. */
    memset(hash_table, 0, PW_LZ4_HASH_SIZE * sizeof *hash_table);
    size_t pos = 1, anchor = 0, misses = 0; /* anchor: the first byte not yet written */

    while (pos + MATCH_MARGIN <= n) {
        uint32_t word = load32(src + pos);
        uint32_t *slot = &hash_table[slot_of(word)];
        size_t match = *slot;
        *slot = (uint32_t)pos;
        if (pos - match > MAX_OFFSET || load32(src + match) != word) {
            pos += 1 + (misses++ >> SKIP_SHIFT);
            continue;
        }
        /* The search may have skipped the first bytes of the match. */
        while (pos > anchor && match > 0 && src[pos - 1] == src[match - 1]) pos--, match--;

        size_t rest = n - LAST_LITERALS - pos - MIN_MATCH;
        size_t len = MIN_MATCH + common_length(src + pos + MIN_MATCH, src + match + MIN_MATCH, rest);
        if (!put_sequence(&out, src + anchor, pos - anchor, pos - match, len)) return 0;
        anchor = pos += len;
        misses = 0;
        /* Enters one position inside the match, so that a repetition of the match's end is found. */
        hash_table[slot_of(load32(src + pos - 2))] = (uint32_t)(pos - 2);
    }
    return put_sequence(&out, src + anchor, n - anchor, 0, 0) ? out.used : 0;
}

/* Adds the extra length bytes after a token's 15. False: the input ends, or the length exceeds `max` (so the length
 * cannot overflow). */
static bool get_extra(const uint8_t *src, size_t n, size_t *in, size_t *length, size_t max)
{
    if (*length < NIBBLE) return *length <= max;
    uint8_t byte;
    do {
        if (*in == n) return false;
        byte = src[(*in)++];
        *length += byte;
        if (*length > max) return false;
    } while (byte == 255);
    return true;
}

ssize_t pw_lz4_decompress(const uint8_t *src, size_t n, uint8_t *dst, size_t raw)
{
    if (raw > PW_LZ4_MAX_RAW) return -1;
    size_t in = 0, out = 0;

    while (in < n) {
        uint8_t token = src[in++];
        size_t len = token >> 4;
        if (!get_extra(src, n, &in, &len, raw - out) || len > n - in) return -1;
        if (len > 0) memcpy(dst + out, src + in, len); /* an empty dst may be NULL, which is invalid for memcpy */
        in += len;
        out += len;
        if (in == n) return out == raw ? (ssize_t)raw : -1;

        if (n - in < 2) return -1;
        size_t offset = src[in] | (size_t)src[in + 1] << 8;
        in += 2;
        if (offset == 0 || offset > out) return -1;
        len = token & NIBBLE;
        if (!get_extra(src, n, &in, &len, raw - out) || len + MIN_MATCH > raw - out) return -1;
        len += MIN_MATCH;
        /* A match longer than its offset overlaps its own output. Each step copies one whole period. Then the same
           bytes also lie at twice the offset. So source and target never overlap, and the step doubles each time. */
        for (; len > offset; offset *= 2) {
            memcpy(dst + out, dst + out - offset, offset);
            out += offset;
            len -= offset;
        }
        memcpy(dst + out, dst + out - offset, len);
        out += len;
    }
    return -1; /* the input is empty, or ends after a match: the last sequence is missing */
}

/* crc_table[k][b]: the contribution of byte b when k more bytes follow in the same step. */
static uint32_t crc_table[8][256];

/* A second call stores the same final values, so a concurrent reader never sees an incomplete table. */
void pw_crc32_init(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        crc_table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++) {
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t crc = crc_table[k - 1][b];
            crc_table[k][b] = crc >> 8 ^ crc_table[0][crc & 255];
        }
    }
}

uint32_t pw_crc32(uint32_t seed, const void *p, size_t n)
{
    const uint8_t *s = p;
    uint32_t crc = ~seed;

    for (; n >= 8; n -= 8, s += 8) {
        crc ^= s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
        crc = crc_table[7][crc & 255] ^ crc_table[6][crc >> 8 & 255] ^ crc_table[5][crc >> 16 & 255] ^
              crc_table[4][crc >> 24] ^ crc_table[3][s[4]] ^ crc_table[2][s[5]] ^ crc_table[1][s[6]] ^
              crc_table[0][s[7]];
    }
    while (n-- > 0) crc = crc >> 8 ^ crc_table[0][(crc ^ *s++) & 255];
    return ~crc;
}

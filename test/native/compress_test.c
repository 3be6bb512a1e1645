/*
 * Checks ext/pitwall/output/compress.c without Ruby; compress_test.rb builds it with the sanitizers and runs it.
 *
 *   compress_test                 all checks; the first failure is printed, exit status 1
 *   compress_test compress        stdin -> LZ4 block on stdout; exit status 2 when it would not be smaller
 *   compress_test decompress RAW  LZ4 block on stdin -> stdout; exit status 3 when malformed
 *   compress_test crc             CRC-32 of stdin in hex -> stdout
 *
 * Every buffer handed over has exactly the size announced, so AddressSanitizer sees the first byte out of bounds.
 */
#include "output/compress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition, ...) do { \
    if (!(condition)) { \
        fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr); \
        exit(1); \
    } \
} while (0)

enum { MIB = 1 << 20, MUTATIONS = 400000 };

static uint32_t table[PW_LZ4_HASH_SIZE];
static uint64_t random_state = 0x9E3779B97F4A7C15u;

/* xorshift64*, so that a failure repeats everywhere. */
static uint32_t rnd(uint32_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545F4914F6CDD1Du) >> 32) % below;
}

static uint8_t *allocate(size_t n)
{
    uint8_t *p = malloc(n);
    CHECK(p || n == 0, "out of memory");
    return p;
}

static uint8_t *copy_of(const uint8_t *p, size_t n)
{
    uint8_t *copy = allocate(n);
    if (n) memcpy(copy, p, n);
    return copy;
}

/* --- round trips ------------------------------------------------------------ */

enum { NOISE, ZEROS, PERIODIC, TEXT, NUMBERS, FAR, KINDS };

static void fill(uint8_t *p, size_t n, int kind)
{
    static const char *const words[] = { "Integer#times", "block in ", "/app/models/", ".rb", "Array#each", "\n", ":", "0" };
    size_t period = 1 + rnd(40);
    for (size_t i = 0; i < n; i++) {
        switch (kind) {
        case NOISE: p[i] = (uint8_t)rnd(256); break;
        case ZEROS: p[i] = 0; break;
        case PERIODIC: p[i] = i < period ? (uint8_t)rnd(256) : p[i - period]; break;
        case NUMBERS: p[i] = (uint8_t)(i % 4 ? rnd(3) : i >> 8); break; /* like the columns of a recording */
        case FAR: p[i] = i < 65536 ? (uint8_t)rnd(256) : p[i - 65535 - (i / 70000) % 2]; break; /* at and past the largest offset */
        case TEXT:
            for (const char *w = words[rnd(8)]; *w; w++, i++) {
                if (i < n) p[i] = (uint8_t)*w;
            }
            i--;
            break;
        }
    }
}

/* What the format asks of an encoder, read off the block itself; the block is known to be well-formed. */
static void check_end_rules(const uint8_t *block, size_t size, size_t raw)
{
    size_t in = 0, out = 0, last_match = 0, literals = 0;
    int matches = 0;
    for (;;) {
        uint8_t token = block[in++];
        literals = token >> 4;
        if (literals == 15) { do literals += block[in]; while (block[in++] == 255); }
        in += literals;
        out += literals;
        if (in == size) break;
        in += 2;
        last_match = out;
        matches++;
        size_t length = token & 15;
        if (length == 15) { do length += block[in]; while (block[in++] == 255); }
        out += length + 4;
    }
    CHECK(out == raw, "%zu of %zu bytes", out, raw);
    if (matches) CHECK(literals >= 5 && last_match + 12 <= raw, "literals %zu, last match %zu of %zu", literals, last_match, raw);
}

/* Returns the size of the block, 0 when there is none. */
static size_t round_trip(const uint8_t *data, size_t n)
{
    size_t cap = pw_lz4_bound(n);
    uint8_t *block = allocate(cap);
    memset(table, 0xA5, sizeof table); /* must not matter */
    size_t size = pw_lz4_compress(data, n, block, cap, table);
    CHECK(size == 0 || size < n, "%zu bytes became %zu", n, size);
    if (size) {
        uint8_t *exact = copy_of(block, size), *back = allocate(n), *tight = allocate(size);
        CHECK(pw_lz4_decompress(exact, size, back, n) == (ssize_t)n, "%zu bytes", n);
        CHECK(memcmp(data, back, n) == 0, "%zu bytes came back changed", n);
        CHECK(pw_lz4_decompress(exact, size, back, n - 1) == -1, "raw size too small by one");
        uint8_t *larger = allocate(n + 1);
        CHECK(pw_lz4_decompress(exact, size, larger, n + 1) == -1, "raw size too large by one");
        check_end_rules(exact, size, n);
        CHECK(pw_lz4_compress(data, n, tight, size, table) == size, "the exact capacity must do");
        CHECK(memcmp(tight, exact, size) == 0, "the same input must give the same block");
        CHECK(pw_lz4_compress(data, n, tight, size - 1, table) == 0, "one byte less must not do");
        free(exact), free(back), free(tight), free(larger);
    }
    free(block);
    return size;
}

static void test_round_trips(void)
{
    CHECK(round_trip(NULL, 0) == 0, "nothing is not smaller than nothing");
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t n = 1; n < 300; n++) {
            uint8_t *data = allocate(n);
            fill(data, n, kind);
            round_trip(data, n);
            free(data);
        }
        for (int i = 0; i < 40; i++) {
            size_t n = 1 + rnd(200000);
            uint8_t *data = allocate(n);
            fill(data, n, kind);
            size_t size = round_trip(data, n);
            if (kind == NOISE) CHECK(size == 0, "%zu random bytes became %zu", n, size);
            if (kind == ZEROS && n > 100) CHECK(size > 0 && size < n / 255 + 20, "%zu zeros became %zu", n, size);
            free(data);
        }
    }
    static const int large[] = { NOISE, ZEROS, TEXT };
    for (int i = 0; i < 3; i++) {
        uint8_t *data = allocate(16 * MIB);
        fill(data, 16 * MIB, large[i]);
        size_t size = round_trip(data, 16 * MIB);
        CHECK((size == 0) == (large[i] == NOISE), "16 MiB became %zu", size);
        free(data);
    }
    CHECK(pw_lz4_bound(0) >= 1 && pw_lz4_bound(16 * MIB) > 16 * MIB && pw_lz4_bound(SIZE_MAX) == 0, "bounds");
    CHECK(pw_lz4_compress(NULL, (size_t)PW_LZ4_MAX_RAW + 1, NULL, 0, table) == 0, "too large");
    CHECK(pw_lz4_decompress(NULL, 0, NULL, (size_t)PW_LZ4_MAX_RAW + 1) == -1, "too large");
}

/* --- blocks made by hand ------------------------------------------------------ */

static void expect(const char *what, const char *block, size_t size, const char *raw, ssize_t raw_size)
{
    size_t n = raw_size < 0 ? 64 : (size_t)raw_size;
    uint8_t *in = copy_of((const uint8_t *)block, size), *out = allocate(n);
    ssize_t got = pw_lz4_decompress(in, size, out, n);
    CHECK(got == raw_size, "%s: got %zd", what, got);
    if (raw_size > 0) CHECK(memcmp(out, raw, n) == 0, "%s: wrong bytes", what);
    free(in), free(out);
}

#define GOOD(what, block, raw) expect(what, block, sizeof block - 1, raw, (ssize_t)(sizeof raw - 1))
#define BAD(what, block) expect(what, block, sizeof block - 1, NULL, -1)

static void test_blocks(void)
{
    GOOD("empty", "\x00", "");
    GOOD("literals only", "\x30" "abc", "abc");
    GOOD("offset 1", "\x14" "a" "\x01\x00" "\x50" "bcdef", "aaaaaaaaabcdef");
    GOOD("offset 3, overlapping", "\x36" "abc" "\x03\x00" "\x10" "z", "abcabcabcabcaz");
    GOOD("offset as far as the beginning", "\x40" "abcd" "\x04\x00" "\x00", "abcdabcd");
    GOOD("15 literals, extra byte 0", "\xF0\x00" "abcdefghijklmno", "abcdefghijklmno");
    CHECK(pw_lz4_decompress((const uint8_t *)"\x00", 1, NULL, 0) == 0, "an empty target may be NULL");

    BAD("no input", "");
    BAD("empty, but 64 bytes are due", "\x00");
    BAD("offset 0", "\x14" "a" "\x00\x00" "\x50" "bcdef");
    BAD("offset before the beginning", "\x14" "a" "\x02\x00" "\x50" "bcdef");
    BAD("fewer literals than announced", "\x50" "abc");
    BAD("no byte after 15 literals", "\xF0");
    BAD("literal length never ends", "\xF0\xFF");
    BAD("half an offset", "\x14" "a" "\x01");
    BAD("no byte after match length 15", "\x1F" "a" "\x01\x00");
    BAD("ends after a match", "\x1F" "a" "\x01\x00\x2C"); /* 1 + 15 + 44 + 4 = 64 */
    BAD("match passes the end", "\x1F" "a" "\x01\x00\x2D\x00");

    /* 2^24 × 255 is what a 32-bit length would wrap at. */
    size_t n = 17 * MIB;
    uint8_t *endless = allocate(n), out[64];
    memset(endless, 0xFF, n);
    CHECK(pw_lz4_decompress(endless, n, out, sizeof out) == -1, "literal length overflow");
    memcpy(endless, "\x1F" "a" "\x01\x00", 4);
    CHECK(pw_lz4_decompress(endless, n, out, sizeof out) == -1, "match length overflow");
    free(endless);
}

/* --- mutations ------------------------------------------------------------------ */

/* The same decoder, byte for byte and with nothing clever, to compare with. */
static ssize_t naive_decompress(const uint8_t *src, size_t n, uint8_t *dst, size_t raw)
{
    size_t in = 0, out = 0;
    for (;;) {
        if (in == n) return -1;
        int token = src[in++], byte;
        uint64_t length = (uint64_t)token >> 4;
        if (length == 15) do { if (in == n) return -1; length += (uint64_t)(byte = src[in++]); } while (byte == 255);
        for (; length > 0; length--) {
            if (in == n || out == raw) return -1;
            dst[out++] = src[in++];
        }
        if (in == n) return out == raw ? (ssize_t)raw : -1;
        if (n - in < 2) return -1;
        size_t offset = src[in] + 256u * src[in + 1];
        in += 2;
        if (offset == 0 || offset > out) return -1;
        length = token & 15;
        if (length == 15) do { if (in == n) return -1; length += (uint64_t)(byte = src[in++]); } while (byte == 255);
        for (length += 4; length > 0; length--, out++) {
            if (out == raw) return -1;
            dst[out] = dst[out - offset];
        }
    }
}

static void test_mutations(void)
{
    enum { SEEDS = 24, MAX_RAW = 700, MAX_BLOCK = 800 };
    struct { uint8_t bytes[MAX_BLOCK]; size_t size, raw; } seeds[SEEDS];
    for (int i = 0; i < SEEDS;) {
        uint8_t data[MAX_RAW];
        size_t raw = 20 + rnd(i % 2 ? MAX_RAW - 20 : 60);
        fill(data, raw, ZEROS + i % (FAR - ZEROS));
        seeds[i].raw = raw;
        seeds[i].size = pw_lz4_compress(data, raw, seeds[i].bytes, MAX_BLOCK, table);
        if (seeds[i].size) i++;
    }

    long accepted = 0;
    for (long i = 0; i < MUTATIONS; i++) {
        uint8_t bytes[MAX_BLOCK + 8];
        int from = (int)rnd(SEEDS);
        size_t size = seeds[from].size, raw = seeds[from].raw;
        memcpy(bytes, seeds[from].bytes, size);
        for (uint32_t changes = 1 + rnd(4); changes > 0 && size > 0; changes--) {
            size_t at = rnd((uint32_t)size);
            switch (rnd(7)) {
            case 0: bytes[at] = (uint8_t)rnd(256); break;
            case 1: bytes[at] ^= (uint8_t)(1u << rnd(8)); break;
            case 2: bytes[at] = rnd(2) ? 0xFF : 0; break;
            case 3: size = at; break;
            case 4: memmove(bytes + at, bytes + at + 1, --size - at); break;
            case 5: memmove(bytes + at + 1, bytes + at, size++ - at); break;
            case 6: raw = rnd(2) ? raw + rnd(9) : rnd((uint32_t)raw + 1); break;
            }
        }
        uint8_t *in = copy_of(bytes, size), *out = allocate(raw), expected[2 * MAX_RAW];
        ssize_t got = pw_lz4_decompress(in, size, out, raw);
        CHECK(got == naive_decompress(in, size, expected, raw), "mutation %ld: got %zd", i, got);
        if (got > 0) CHECK(memcmp(out, expected, raw) == 0, "mutation %ld: wrong bytes", i);
        accepted += got >= 0;
        free(in), free(out);
    }
    /* Both outcomes must occur, or the mutations test nothing. */
    CHECK(accepted > MUTATIONS / 100 && accepted < MUTATIONS / 10 * 9, "%ld accepted", accepted);
}

/* --- CRC-32 ---------------------------------------------------------------------- */

static uint32_t bitwise_crc(uint32_t crc, const uint8_t *p, size_t n)
{
    for (crc = ~crc; n > 0; n--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return ~crc;
}

static void test_crc(void)
{
    static const struct { const char *text; uint32_t crc; } known[] = {
        { "", 0 },
        { "a", 0xE8B7BE43 },
        { "abc", 0x352441C2 },
        { "123456789", 0xCBF43926 },
        { "The quick brown fox jumps over the lazy dog", 0x414FA339 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t crc = pw_crc32(0, known[i].text, strlen(known[i].text));
        CHECK(crc == known[i].crc, "\"%s\": got %08x", known[i].text, crc);
    }
    CHECK(pw_crc32(0x12345678, NULL, 0) == 0x12345678, "nothing changes nothing");

    uint8_t data[64 + 8];
    fill(data, sizeof data, NOISE);
    for (size_t start = 0; start < 8; start++) { /* each alignment, length and place to cut in two */
        for (size_t n = 0; n <= 64; n++) {
            uint32_t expected = bitwise_crc(0, data + start, n);
            for (size_t cut = 0; cut <= n; cut++) {
                uint32_t crc = pw_crc32(pw_crc32(0, data + start, cut), data + start + cut, n - cut);
                CHECK(crc == expected, "start %zu, %zu bytes, cut at %zu", start, n, cut);
            }
        }
    }
    pw_crc32_init();
    CHECK(pw_crc32(0, "abc", 3) == 0x352441C2, "a second init changes nothing");
}

/* --- helper modes ------------------------------------------------------------------ */

static uint8_t *read_stdin(size_t *n)
{
    size_t cap = 1 << 16, got;
    uint8_t *bytes = allocate(cap);
    for (*n = 0; (got = fread(bytes + *n, 1, cap - *n, stdin)) > 0;) {
        *n += got;
        if (*n == cap) CHECK((bytes = realloc(bytes, cap *= 2)) != NULL, "out of memory");
    }
    uint8_t *exact = copy_of(bytes, *n);
    free(bytes);
    return exact;
}

static int convert(int decompress, size_t raw)
{
    size_t n;
    uint8_t *in = read_stdin(&n);
    size_t cap = decompress ? raw : pw_lz4_bound(n);
    uint8_t *out = allocate(cap);
    ssize_t size = decompress ? pw_lz4_decompress(in, n, out, cap) : (ssize_t)pw_lz4_compress(in, n, out, cap, table);
    int status = decompress ? (size < 0 ? 3 : 0) : (size == 0 ? 2 : 0);
    if (status == 0) fwrite(out, 1, (size_t)size, stdout);
    free(in), free(out);
    return status;
}

static int print_crc(void)
{
    size_t n;
    uint8_t *in = read_stdin(&n);
    printf("%08x\n", pw_crc32(0, in, n));
    free(in);
    return 0;
}

static void run(const char *name, void (*test)(void))
{
    clock_t start = clock();
    test();
    printf("%s: ok, %.2f s\n", name, (double)(clock() - start) / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
    pw_crc32_init();
    if (argc == 2 && strcmp(argv[1], "compress") == 0) return convert(0, 0);
    if (argc == 3 && strcmp(argv[1], "decompress") == 0) return convert(1, strtoull(argv[2], NULL, 10));
    if (argc == 2 && strcmp(argv[1], "crc") == 0) return print_crc();
    if (argc > 1) return fprintf(stderr, "usage: compress_test [compress | decompress RAW | crc]\n"), 64;
    run("crc", test_crc);
    run("blocks", test_blocks);
    run("round trips", test_round_trips);
    run("mutations", test_mutations);
    return 0;
}

#include "collectors/allocations/duplicates.h"
#include "output/output.h"
#include "session/session.h"
#include "vm/vm_compat.h"
#include <string.h>
#include <sys/random.h>

enum { WRITTEN = 20000 }; /* maximum rows of a recording; keeps the rows with most bytes */

typedef struct { uint64_t digest, bytes; uint32_t length, site, count, group; } content;
static struct {
    content *table; /* count 0: empty */
    uint32_t used;
    uint64_t key[2], left_out;
} state;

/* SipHash-1-3 (Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012). The hash tables of Ruby and other
 * languages use the same function. */
static inline uint64_t rotated(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline void
sip_round(uint64_t v[4])
{
    v[0] += v[1], v[1] = rotated(v[1], 13) ^ v[0], v[0] = rotated(v[0], 32);
    v[2] += v[3], v[3] = rotated(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotated(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotated(v[1], 17) ^ v[2], v[2] = rotated(v[2], 32);
}

static uint64_t
digest_of(const uint8_t *bytes, size_t n)
{
    uint64_t v[4] = {state.key[0] ^ 0x736f6d6570736575u, state.key[1] ^ 0x646f72616e646f6du,
                     state.key[0] ^ 0x6c7967656e657261u, state.key[1] ^ 0x7465646279746573u};
    size_t whole = n / 8;
    for (size_t i = 0; i <= whole; i++) {
        uint64_t word = 0;
        memcpy(&word, bytes + i * 8, i < whole ? 8 : n % 8);
        if (i == whole) word |= (uint64_t)n << 56;
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

bool
pw_duplicates_start(void)
{
    pw_duplicates_free();
    if (getrandom(state.key, sizeof state.key, 0) != (ssize_t)sizeof state.key) return false;
    state.table = calloc(PW_MAX_DUPLICATES, sizeof(content));
    return state.table != NULL;
}

void
pw_duplicates_add(VALUE string, uint32_t site, size_t bytes, bool swept)
{
    if (!state.table) return;
    bool elsewhere = pw_string_is_shared(RBASIC(string)->flags);
    if (swept && elsewhere) { /* the bytes belong to another string, which may have been freed */
        state.left_out++;
        return;
    }
    size_t length = (size_t)RSTRING_LEN(string);
    if (length == 0) return;
    uint64_t digest = digest_of((const uint8_t *)RSTRING_PTR(string), length);
    uint32_t at = (uint32_t)((digest ^ (uint64_t)site * 0x9e3779b97f4a7c15u) >> 32) & (PW_MAX_DUPLICATES - 1);
    for (; state.table[at].count; at = (at + 1) & (PW_MAX_DUPLICATES - 1)) {
        content *c = &state.table[at];
        if (c->digest != digest || c->site != site || c->length != (uint32_t)length) continue;
        c->count++;
        c->bytes += bytes;
        return;
    }
    if (state.used >= PW_MAX_DUPLICATES / 4 * 3) {
        state.left_out++;
        return;
    }
    state.used++;
    state.table[at] = (content){.digest = digest, .bytes = bytes, .length = (uint32_t)length, .site = site, .count = 1};
}

static int
by_content(const void *a, const void *b)
{
    const content *x = a, *y = b;
    if (x->digest != y->digest) return x->digest < y->digest ? -1 : 1;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static int
by_bytes(const void *a, const void *b)
{
    const content *x = a, *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* Gives equal contents the same group number, in place. Drops contents that occur once. Returns the number of rows
 * left. */
static uint32_t
keep_groups(void)
{
    uint32_t n = 0, kept = 0, groups = 0;
    for (uint32_t i = 0; i < PW_MAX_DUPLICATES; i++) {
        if (state.table[i].count) state.table[n++] = state.table[i];
    }
    qsort(state.table, n, sizeof(content), by_content);
    for (uint32_t from = 0, to; from < n; from = to) {
        uint64_t count = 0;
        for (to = from; to < n && state.table[to].digest == state.table[from].digest &&
             state.table[to].length == state.table[from].length; to++) {
            count += state.table[to].count;
        }
        if (count < 2) continue;
        groups++;
        for (uint32_t i = from; i < to; i++) {
            state.table[i].group = groups;
            state.table[kept++] = state.table[i];
        }
    }
    qsort(state.table, kept, sizeof(content), by_bytes);
    return kept;
}

void
pw_duplicates_write(void)
{
    enum { COLUMNS = 5 };
    if (!state.table) return;
    uint32_t n = keep_groups();
    if (n > WRITTEN) {
        for (uint32_t i = WRITTEN; i < n; i++) state.left_out += state.table[i].count;
        n = WRITTEN;
    }
    pw_buffer columns[COLUMNS] = {{0}};
    for (uint32_t i = 0; i < n; i++) {
        uint64_t values[COLUMNS] = {state.table[i].group, state.table[i].site, state.table[i].length,
                                    state.table[i].count, state.table[i].bytes};
        pw_buffer_row(columns, values, COLUMNS);
    }
    pw_writer_table(&pw_out.writer, "DUPS", 2, (uint64_t[]){state.left_out, n}, COLUMNS, columns);
    pw_buffers_free(columns, COLUMNS);
    pw_duplicates_free();
}

void
pw_duplicates_free(void)
{
    free(state.table);
    state.table = NULL;
    state.used = 0;
    state.left_out = 0;
    memset(state.key, 0, sizeof state.key);
}

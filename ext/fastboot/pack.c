#include "pack.h"

#include <stdlib.h>
#include <string.h>

#define K0 0x9e3779b97f4a7c15u
#define K1 0xd6e8feb86659fd93u

static inline uint64_t
fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t
word_at(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

uint64_t
fb_sum(const void *data, size_t length)
{
    const char *bytes = data;
    uint64_t sum = fold(length ^ K0, K1);
    size_t left = length;
    for (; left >= 16; left -= 16, bytes += 16) sum = fold(word_at(bytes) ^ K0 ^ sum, word_at(bytes + 8) ^ K1);

    char rest[16] = {0};
    if (left) memcpy(rest, bytes, left);
    return fold(fold(word_at(rest) ^ K0 ^ sum, word_at(rest + 8) ^ K1), length ^ K1);
}

static uint64_t
hash_of(uint32_t kind, const char *key, size_t key_length, uint64_t options)
{
    return fold(fb_sum(key, key_length) ^ K1, options ^ K0 ^ kind);
}

static uint64_t
padded(uint64_t length)
{
    return (length + FB_ALIGNMENT - 1) & ~(uint64_t)(FB_ALIGNMENT - 1);
}

static int
same_key(const struct fb_entry *entry, uint32_t kind, const char *key, size_t key_length, uint64_t options)
{
    return entry->head->kind == kind && entry->head->options == options && entry->head->key_length == key_length &&
           memcmp(entry->key, key, key_length) == 0;
}

/* The slot of a key: its newest entry's, or an empty one. */
static uint32_t *
slot_of(const struct fb_pack *pack, uint32_t kind, const char *key, size_t key_length, uint64_t options, uint64_t hash)
{
    for (uint32_t i = (uint32_t)hash & (pack->slot_count - 1);; i = (i + 1) & (pack->slot_count - 1)) {
        uint32_t at = pack->slots[i];
        if (!at) return &pack->slots[i];
        const struct fb_entry *entry = &pack->entries[at - 1];
        if (entry->hash == hash && same_key(entry, kind, key, key_length, options)) return &pack->slots[i];
    }
}

/* Makes the table at least twice as large as the number of entries. */
static int
grow_slots(struct fb_pack *pack)
{
    if (pack->slot_count > pack->count * 2) return 1;

    uint32_t wanted = pack->slot_count ? pack->slot_count * 4 : 1024;
    uint32_t *slots = calloc(wanted, sizeof *slots);
    if (!slots) return 0;
    free(pack->slots);
    pack->slots = slots;
    pack->slot_count = wanted;
    for (uint32_t i = 0; i < pack->count; i++) {
        const struct fb_entry *entry = &pack->entries[i];
        const struct fb_head *head = entry->head;
        if (!entry->is_newest) continue;
        *slot_of(pack, head->kind, entry->key, head->key_length, head->options, entry->hash) = i + 1;
    }
    return 1;
}

size_t
fb_folder_length(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] != '/') length--;
    return length;
}

static uint64_t
hash_of_folder(const char *path, size_t length)
{
    uint64_t sum = fb_sum(path, fb_folder_length(path, length));
    return sum ? sum : 1;
}

static int
add(struct fb_pack *pack, const struct fb_head *head, const char *key, const char *body)
{
    if (!grow_slots(pack)) return 0;
    if (pack->count == pack->capacity) {
        uint32_t capacity = pack->capacity ? pack->capacity * 2 : 1024;
        struct fb_entry *entries = realloc(pack->entries, capacity * sizeof *entries);
        if (!entries) return 0;
        pack->entries = entries;
        pack->capacity = capacity;
    }
    uint64_t hash = hash_of(head->kind, key, head->key_length, head->options);
    uint32_t *slot = slot_of(pack, head->kind, key, head->key_length, head->options, hash);
    uint32_t older = *slot, older_count = 0;
    if (older) {
        pack->entries[older - 1].is_newest = 0;
        older_count = pack->entries[older - 1].older_count + 1u;
    }
    /* Each version is compared with those before it. A damaged pack may have very many of one file. */
    if (older_count == FB_MOST_VERSIONS) older = older_count = 0;
    int is_plain = head->kind == FB_CODE && !memchr(key, 0, head->key_length);
    pack->entries[pack->count++] = (struct fb_entry){
        .head = head, .key = key, .body = body, .attributes = head->attributes, .hash = hash,
        .content = hash_of(head->kind, (const char *)head->digest, FB_DIGEST_SIZE, head->options),
        .folder = is_plain ? hash_of_folder(key, head->key_length) : 0, .older = older,
        .older_count = (uint16_t)older_count, .is_newest = 1,
    };
    *slot = pack->count;
    return 1;
}

static void
note_seen(struct fb_pack *pack, enum fb_kind kind, const struct fb_head *head, const char *key)
{
    struct fb_entry *entry = fb_pack_find(pack, kind, key, head->key_length, head->options);
    for (; entry; entry = fb_pack_older(pack, entry)) {
        if (memcmp(entry->head->digest, head->digest, FB_DIGEST_SIZE) == 0) entry->attributes = head->attributes;
    }
}

/* The record at an offset. Returns its length; 0: there is no whole record. */
static uint64_t
record_at(const char *bytes, size_t size, size_t at, const struct fb_head **found)
{
    if (size - at < sizeof(struct fb_head)) return 0;

    const struct fb_head *head = (const void *)(bytes + at);
    uint64_t left = size - at - sizeof *head;
    if (head->magic != FB_RECORD_MAGIC || head->key_length == 0 || head->key_length > FB_LONGEST_KEY) return 0;
    uint64_t key_space = padded(head->key_length);
    if (key_space > left || head->body_length > left - key_space) return 0;
    uint64_t body_space = padded(head->body_length);
    if (body_space > left - key_space) return 0;

    uint64_t sum = fb_sum(head, offsetof(struct fb_head, head_sum)) ^ fb_sum(head + 1, head->key_length);
    if (sum != head->head_sum) return 0;
    *found = head;
    return sizeof *head + key_space + body_space;
}

const char *
fb_pack_scan(struct fb_pack *pack, const char *bytes, size_t size, const uint8_t identity[FB_DIGEST_SIZE])
{
    const struct fb_header *header = (const void *)bytes;
    pack->bytes = bytes;
    pack->size = size;
    if (size < sizeof *header || memcmp(header->magic, FB_MAGIC, sizeof header->magic) != 0) return "it is no pack";
    if (header->sum != fb_sum(header, offsetof(struct fb_header, sum))) return "its header is damaged";
    if (memcmp(header->identity, identity, FB_DIGEST_SIZE) != 0) return "it belongs to another Ruby";
    pack->flags = header->flags;
    if (!grow_slots(pack)) return "there is no memory for it";

    size_t at = sizeof *header;
    const struct fb_head *head;
    for (uint64_t length; (length = record_at(bytes, size, at, &head)); at += length) {
        const char *key = (const char *)(head + 1);
        const char *body = key + padded(head->key_length);
        int has_body = head->kind == FB_CODE || head->kind == FB_DATA;
        if (has_body && !add(pack, head, key, body)) return "there is no memory for it";
        if (head->kind == FB_SEEN) note_seen(pack, FB_CODE, head, key);
        if (head->kind == FB_DATA_SEEN) note_seen(pack, FB_DATA, head, key);
        pack->records++;
    }
    pack->valid_size = at;
    return NULL;
}

struct fb_entry *
fb_pack_find(const struct fb_pack *pack, enum fb_kind kind, const char *key, size_t key_length, uint64_t options)
{
    uint32_t at = *slot_of(pack, kind, key, key_length, options, hash_of(kind, key, key_length, options));
    return at ? &pack->entries[at - 1] : NULL;
}

struct fb_entry *
fb_pack_older(const struct fb_pack *pack, const struct fb_entry *entry)
{
    return entry->older ? &pack->entries[entry->older - 1] : NULL;
}

/* The slot of a hash in a table of entries: an entry's that has this hash, or an empty one.
 * field: where entries have the hash (offsetof) */
static uint32_t *
hash_slot(const struct fb_pack *pack, uint32_t *table, size_t field, uint64_t hash)
{
    for (uint32_t i = (uint32_t)hash & (pack->slot_count - 1);; i = (i + 1) & (pack->slot_count - 1)) {
        if (!table[i] || word_at((const char *)&pack->entries[table[i] - 1] + field) == hash) return &table[i];
    }
}

static uint32_t *
content_slot(const struct fb_pack *pack, uint64_t content)
{
    return hash_slot(pack, pack->contents, offsetof(struct fb_entry, content), content);
}

/* The table is made when it is needed first. Most boots have no new file. */
static int
make_contents(struct fb_pack *pack)
{
    if (pack->contents) return 1;
    pack->contents = calloc(pack->slot_count, sizeof *pack->contents);
    if (!pack->contents) return 0;
    for (uint32_t i = 0; i < pack->count; i++) *content_slot(pack, pack->entries[i].content) = i + 1;
    return 1;
}

const struct fb_entry *
fb_pack_with_content(struct fb_pack *pack, enum fb_kind kind, uint64_t options, const uint8_t digest[FB_DIGEST_SIZE])
{
    if (!make_contents(pack)) return NULL;
    uint32_t at = *content_slot(pack, hash_of(kind, (const char *)digest, FB_DIGEST_SIZE, options));
    const struct fb_entry *entry = at ? &pack->entries[at - 1] : NULL;
    if (!entry || entry->head->kind != kind || entry->head->options != options) return NULL;
    return memcmp(entry->head->digest, digest, FB_DIGEST_SIZE) == 0 ? entry : NULL;
}

static uint32_t *
folder_slot(const struct fb_pack *pack, uint64_t folder)
{
    return hash_slot(pack, pack->folders, offsetof(struct fb_entry, folder), folder);
}

static int
make_folders(struct fb_pack *pack)
{
    if (pack->folders) return 1;
    pack->folders = calloc(pack->slot_count, sizeof *pack->folders);
    if (!pack->folders) return 0;
    for (uint32_t i = pack->count; i > 0; i--) { /* each is put before those that come later in the pack */
        struct fb_entry *entry = &pack->entries[i - 1];
        if (!entry->folder || !entry->is_newest) continue;
        uint32_t *slot = folder_slot(pack, entry->folder);
        entry->beside = *slot;
        *slot = i;
    }
    return 1;
}

struct fb_entry *
fb_pack_second_of_folder(struct fb_pack *pack, const char *path, size_t length)
{
    if (!make_folders(pack)) return NULL;
    uint32_t at = *folder_slot(pack, hash_of_folder(path, length));
    struct fb_entry *first = at ? &pack->entries[at - 1] : NULL;
    if (!first || first->asked == 2) return NULL;
    first->asked++;
    return first->asked == 2 ? first : NULL;
}

struct fb_entry *
fb_pack_beside(const struct fb_pack *pack, const struct fb_entry *entry)
{
    return entry->beside ? &pack->entries[entry->beside - 1] : NULL;
}

int
fb_entry_intact(const struct fb_entry *entry)
{
    return fb_sum(entry->body, entry->head->body_length) == entry->head->body_sum;
}

int
fb_attributes_equal(const struct fb_attributes *a, const struct fb_attributes *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

void
fb_pack_free(struct fb_pack *pack)
{
    free(pack->entries);
    free(pack->slots);
    free(pack->contents);
    free(pack->folders);
    pack->entries = NULL;
    pack->slots = pack->contents = pack->folders = NULL;
}

/* Damaged and hostile packs of the accelerator: bytes changed, files cut off, lengths at their extremes, the same record
 * again and again. Nothing beyond the file may be read, and code counts as intact only if it is what was written.
 *
 * sources: pack.c */
#include "unit.h"
#include "pack.h"

enum { KEYS = 12, OPTIONS = 7, MANY = 100000 };

static const uint8_t identity[FB_DIGEST_SIZE] = {1, 2, 3};

/* A pack in the making. */
static struct {
    char *bytes;
    size_t size, room;
} made;

static size_t
padded_size(size_t size)
{
    return (size + FB_ALIGNMENT - 1) / FB_ALIGNMENT * FB_ALIGNMENT;
}

static char *
grow(size_t size)
{
    while (made.size + size > made.room) made.bytes = realloc(made.bytes, made.room = made.room * 2 + 4096);
    char *at = made.bytes + made.size;
    memset(at, 0, size);
    made.size += size;
    return at;
}

static void
begin(void)
{
    made.size = 0;
    struct fb_header *header = (void *)grow(sizeof *header);
    memcpy(header->magic, FB_MAGIC, sizeof header->magic);
    memcpy(header->identity, identity, sizeof identity);
    header->sum = fb_sum(header, offsetof(struct fb_header, sum));
}

static void
sign(struct fb_head *head, size_t key_length)
{
    head->head_sum = fb_sum(head, offsetof(struct fb_head, head_sum)) ^ fb_sum(head + 1, key_length);
}

static char
byte_of(uint32_t kind, uint32_t key, uint32_t version, size_t at)
{
    return (char)(kind * 101 + key * 31 + version * 7 + at);
}

/* The digest has the version. The body is made of kind, key and version. */
static void
put_record(enum fb_kind kind, uint32_t key, uint32_t version, size_t body_length)
{
    char name[24];
    size_t key_length = (size_t)snprintf(name, sizeof name, "/app/file%u.rb", key);
    size_t key_space = padded_size(key_length);
    struct fb_head *head = (void *)grow(sizeof *head + key_space + padded_size(body_length));
    char *body = (char *)(head + 1) + key_space;
    memcpy(head + 1, name, key_length);
    for (size_t i = 0; i < body_length; i++) body[i] = byte_of(kind, key, version, i);
    *head = (struct fb_head){
        .magic = FB_RECORD_MAGIC, .kind = kind, .key_length = (uint32_t)key_length, .body_length = body_length,
        .options = OPTIONS, .attributes = {.inode = version, .ctime_ns = 1}, .body_sum = fb_sum(body, body_length),
    };
    memcpy(head->digest, &version, sizeof version);
    sign(head, key_length);
}

static const struct fb_entry *
find(const struct fb_pack *pack, enum fb_kind kind, uint32_t key)
{
    char name[24];
    size_t length = (size_t)snprintf(name, sizeof name, "/app/file%u.rb", key);
    return fb_pack_find(pack, kind, name, length, OPTIONS);
}

static void
check_body(const struct fb_entry *entry, enum fb_kind kind, uint32_t key)
{
    uint32_t version;
    memcpy(&version, entry->head->digest, sizeof version);
    for (size_t i = 0; i < entry->head->body_length; i++) EQUAL(byte_of(kind, key, version, i), entry->body[i]);
}

/* All files of code lie in one folder, unless a damaged key says otherwise. */
static void
use_folder(struct fb_pack *pack)
{
    const char path[] = "/app/another.rb";
    uint32_t files = 0, expected = 0;
    for (uint32_t i = 0; i < pack->count; i++) {
        const struct fb_entry *entry = &pack->entries[i];
        size_t length = entry->head->key_length;
        if (entry->head->kind != FB_CODE || !entry->is_newest || memchr(entry->key, 0, length)) continue;
        expected += fb_folder_length(entry->key, length) == 5 && memcmp(entry->key, "/app/", 5) == 0;
    }
    CHECK(!fb_pack_second_of_folder(pack, path, strlen(path)));
    const struct fb_entry *entry = fb_pack_second_of_folder(pack, path, strlen(path));
    for (; entry; entry = fb_pack_beside(pack, entry)) {
        files++;
        CHECK(!entry->beside || fb_pack_beside(pack, entry) > entry);
    }
    EQUAL(expected, files);
    CHECK(!fb_pack_second_of_folder(pack, path, strlen(path)));
    for (int i = 0; i < 2; i++) CHECK(!fb_pack_second_of_folder(pack, "/other/a.rb", 11));
    for (int i = 0; i < 2; i++) CHECK(!fb_pack_second_of_folder(pack, "", 0));
}

/* Scans a copy that ends where its block ends, and uses each entry as fastboot.c does. Returns how many are intact. */
static uint32_t
use(const char *bytes, size_t size)
{
    char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    struct fb_pack pack = {0};
    uint32_t intact = 0;
    if (!fb_pack_scan(&pack, copy, size, identity)) {
        CHECK(pack.valid_size <= size);
        for (uint32_t i = 0; i < pack.count; i++) {
            const struct fb_entry *entry = &pack.entries[i];
            CHECK(entry->key >= copy && entry->key + entry->head->key_length <= copy + size);
            CHECK(entry->body >= copy && entry->head->body_length <= (size_t)(copy + size - entry->body));
            CHECK(entry->older <= i);
            fb_entry_intact(entry);
            CHECK(fb_pack_with_content(&pack, entry->head->kind, entry->head->options, entry->head->digest));
        }
        use_folder(&pack);
        for (uint32_t i = 0; i < 2 * KEYS; i++) {
            enum fb_kind kind = i % 2 ? FB_CODE : FB_DATA;
            const struct fb_entry *entry = find(&pack, kind, i / 2);
            CHECK(!entry || entry->is_newest);
            for (; entry; entry = fb_pack_older(&pack, entry)) {
                if (!fb_entry_intact(entry)) continue;
                check_body(entry, kind, i / 2);
                intact++;
            }
        }
    }
    fb_pack_free(&pack);
    free(copy);
    return intact;
}

static void
put_some(void)
{
    begin();
    for (uint32_t i = 0; i < 30; i++) {
        put_record((enum fb_kind)(1 + unit_random(4)), unit_random(KEYS), unit_random(3), unit_random(200));
    }
}

TEST(a_whole_pack_is_read)
{
    begin();
    for (uint32_t key = 0; key < KEYS; key++) put_record(FB_CODE, key, key, key * 17);
    EQUAL(KEYS, use(made.bytes, made.size));
}

TEST(each_bit_may_be_wrong)
{
    begin();
    for (uint32_t key = 0; key < 4; key++) put_record(FB_CODE, key, 1, 40 + key);
    for (size_t bit = 0; bit < made.size * 8; bit++) {
        made.bytes[bit / 8] ^= (char)(1 << bit % 8);
        CHECK(use(made.bytes, made.size) <= 4);
        made.bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
}

TEST(it_may_end_anywhere)
{
    begin();
    for (uint32_t key = 0; key < 4; key++) put_record(FB_CODE, key, 1, 40 + key);
    uint32_t before = 0;
    for (size_t size = 0; size <= made.size; size++) {
        uint32_t intact = use(made.bytes, size);
        CHECK(intact >= before);
        before = intact;
    }
    EQUAL(4, before);
}

/* Bytes, and pieces of the file at other places: records twice, records of one file with the code of another. */
TEST(random_damage)
{
    uint32_t intact = 0;
    for (uint32_t round = 0; round < unit_rounds(20000); round++) {
        unit_note("round %u", round);
        put_some();
        for (uint32_t n = unit_random(6); n > 0; n--) {
            size_t length = 1 + unit_random(300), from = unit_random((uint32_t)made.size), to = unit_random((uint32_t)made.size);
            size_t grid = unit_random(2) ? FB_ALIGNMENT : 1;
            from -= from % grid;
            to -= to % grid;
            if (length > made.size - from) length = made.size - from;
            if (length > made.size - to) length = made.size - to;
            switch (unit_random(3)) {
              case 0: made.bytes[to] = (char)unit_random(256); break;
              case 1: made.bytes[to] ^= (char)(1 << unit_random(8)); break;
              default: memmove(made.bytes + to, made.bytes + from, length);
            }
        }
        intact += use(made.bytes, unit_random(4) ? made.size : unit_random((uint32_t)made.size));
    }
    CHECK(intact > 0);
}

/* Heads whose checksum is right, and whose lengths are not. */
TEST(lengths_at_their_extremes)
{
    static const uint64_t extremes[] = {0, 1, 15, 16, 17, 8191, 8192, 8193, UINT32_MAX - 15, UINT32_MAX, UINT64_MAX,
                                        UINT64_MAX - 15, UINT64_MAX - 127, INT64_MAX, (uint64_t)1 << 63};
    enum { COUNT = sizeof extremes / sizeof *extremes };
    for (uint32_t i = 0; i < COUNT; i++) {
        for (uint32_t j = 0; j < COUNT + 40; j++) {
            unit_note("key %u, body %u", i, j);
            begin();
            put_record(FB_CODE, 1, 1, 100);
            size_t at = made.size;
            put_record(FB_CODE, 2, 1, 100);
            struct fb_head *head = (void *)(made.bytes + at);
            size_t left = made.size - at - sizeof *head;
            head->key_length = (uint32_t)extremes[i];
            head->body_length = j < COUNT ? extremes[j] : left - 20 + (j - COUNT);
            sign(head, head->key_length <= left ? head->key_length : 1);
            CHECK(use(made.bytes, made.size) >= 1);
        }
    }
}

static void
use_many(uint32_t expected, uint32_t entries)
{
    struct fb_pack pack = {0};
    CHECK(!fb_pack_scan(&pack, made.bytes, made.size, identity));
    EQUAL(made.size, pack.valid_size);
    EQUAL(expected, pack.records);
    EQUAL(entries, pack.count);
    for (uint32_t i = 0; i < entries; i += 97) {
        const struct fb_entry *entry = &pack.entries[i];
        const struct fb_entry *found = fb_pack_find(&pack, FB_CODE, entry->key, entry->head->key_length, OPTIONS);
        CHECK(found && found->is_newest && fb_entry_intact(found));
    }
    fb_pack_free(&pack);
}

TEST(many_files)
{
    begin();
    uint32_t many = unit_rounds(MANY);
    for (uint32_t i = 0; i < many; i++) put_record(FB_CODE, i, 1, 16);
    for (uint32_t i = 0; i < many; i++) put_record(FB_SEEN, i, 1, 0);
    use_many(2 * many, many);
}

/* Of one file, in turn with what was seen of it: the newest, and a version that there is not. */
TEST(many_versions_of_one_file)
{
    begin();
    uint32_t many = unit_rounds(MANY);
    for (uint32_t i = 0; i < many; i++) {
        put_record(FB_CODE, 1, i, 16);
        put_record(FB_SEEN, 1, unit_random(2) ? i : many, 0);
    }
    use_many(2 * many, many);
}

TEST(nothing_but_heads_of_nothing)
{
    begin();
    memset(grow(1 << 20), 0, 1 << 20);
    EQUAL(0, use(made.bytes, made.size));
    begin();
    for (uint32_t i = 0; i < 1000; i++) put_record((enum fb_kind)(i % 2 ? FB_SEEN : 5 + i), 1, 1, 0);
    EQUAL(0, use(made.bytes, made.size));
}

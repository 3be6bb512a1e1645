#ifndef FASTBOOT_PACK_H
#define FASTBOOT_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "blake2b.h"

/*
 * A pack is one file: a header, then records. lib/pitwall/fastboot/format.rb writes it.
 * A writer appends to a pack, or replaces it by rename. So the mapped part of a pack never changes. A reader compares
 * each length with the file's size, and each head and body with its checksum.
 */

#define FB_MAGIC "PWBOOT1\n"
#define FB_RECORD_MAGIC 0x43525746u
#define FB_ALIGNMENT 16
#define FB_LONGEST_KEY 8192u
#define FB_MOST_VERSIONS 64u

enum fb_kind {
    FB_CODE = 1, /* compiled code of a file */
    FB_SEEN = 2, /* no body: the file of an earlier FB_CODE has these attributes now */
    FB_DATA = 3, /* what a YAML, JSON or time zone file was parsed to */
    FB_DATA_SEEN = 4, /* no body: the file of an earlier FB_DATA has these attributes now */
};

enum fb_flag {
    FB_FROZEN = 1, /* files are not checked, and the pack is not written */
};

struct fb_header {
    char magic[8];
    uint8_t identity[FB_DIGEST_SIZE]; /* of the Ruby that compiled the code */
    uint64_t flags;
    uint64_t reserved;
    uint64_t sum; /* of the bytes before */
};

/* What a file looked like when its content was read. `ctime_ns` is 0 where the file had changed too recently. */
struct fb_attributes {
    uint64_t device, inode, size, mtime_ns, ctime_ns;
};

struct fb_head {
    uint32_t magic, kind, key_length, reserved;
    uint64_t body_length;
    uint64_t options; /* of the compiler or the parser, as a hash */
    struct fb_attributes attributes;
    uint8_t digest[FB_DIGEST_SIZE]; /* of the file's content */
    uint64_t written_s;
    uint64_t body_sum;
    uint64_t head_sum; /* of the bytes before and the key */
};

_Static_assert(sizeof(struct fb_header) == 64, "a header has 64 bytes");
_Static_assert(sizeof(struct fb_head) == 128, "a head has 128 bytes");

/* One version of a file. */
struct fb_entry {
    const struct fb_head *head;
    const char *key;
    const char *body;
    struct fb_attributes attributes; /* the newest known */
    uint64_t hash;    /* of kind, options and key */
    uint64_t content; /* hash of kind, options and digest: a copy, because heads are spread over the whole file */
    uint64_t folder;  /* hash of the folder of a file of code whose path is its real path; 0: another kind of entry */
    uint32_t older; /* index + 1 of the version before of the same kind, key and options; 0: none */
    uint32_t beside; /* index + 1 of another entry of the same folder; 0: none, or not needed yet */
    uint16_t older_count; /* how many can be reached by `older`, less than FB_MOST_VERSIONS */
    uint8_t is_newest;
    uint8_t asked; /* how many times fb_pack_second_of_folder was called, 2 at most; of the folder's first entry */
};

struct fb_pack {
    const char *bytes;
    size_t size;       /* of the file when it was mapped */
    size_t valid_size; /* up to here there are whole records */
    uint64_t flags;
    struct fb_entry *entries;
    uint32_t count, capacity;
    uint32_t *slots; /* hash table: index + 1 of the newest version */
    uint32_t slot_count;
    uint32_t *contents; /* the same by content, of any file, with as many slots; NULL: not needed yet */
    uint32_t *folders;  /* the same by folder: index + 1 of one entry; NULL: not needed yet */
    uint32_t records;
};

/* A checksum of 64 bits against damage. It is no protection against an attacker: the owner check is. */
uint64_t fb_sum(const void *data, size_t length);

/* Reads the records of a mapped file. Returns NULL, or why it is no pack of this identity. Frees nothing on failure:
 * call fb_pack_free. */
const char *fb_pack_scan(struct fb_pack *pack, const char *bytes, size_t size, const uint8_t identity[FB_DIGEST_SIZE]);

/* The newest version of a key, FB_CODE or FB_DATA; NULL: none. */
struct fb_entry *fb_pack_find(const struct fb_pack *pack, enum fb_kind kind, const char *key, size_t key_length,
                              uint64_t options);

/* The version before; NULL: none. */
struct fb_entry *fb_pack_older(const struct fb_pack *pack, const struct fb_entry *entry);

/* The newest version that has this content, of any file; NULL: none. */
const struct fb_entry *fb_pack_with_content(struct fb_pack *pack, enum fb_kind kind, uint64_t options,
                                            const uint8_t digest[FB_DIGEST_SIZE]);

/* The pack's first entry of a file of code in the folder of `path`, if this is the second call for that folder; else
 * NULL. Folders are found by a hash of their path, and two paths may have the same hash. So the caller must check that
 * the key of each entry begins with the folder. */
struct fb_entry *fb_pack_second_of_folder(struct fb_pack *pack, const char *path, size_t length);

/* The next of them; NULL: none. */
struct fb_entry *fb_pack_beside(const struct fb_pack *pack, const struct fb_entry *entry);

/* How many bytes of a path its folder takes, with the slash at its end. */
size_t fb_folder_length(const char *path, size_t length);

/* Is the body as it was written? Reads all of it. */
int fb_entry_intact(const struct fb_entry *entry);

int fb_attributes_equal(const struct fb_attributes *a, const struct fb_attributes *b);

void fb_pack_free(struct fb_pack *pack);

#endif

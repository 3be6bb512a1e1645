/* Writes chunks of the recording (doc/record-format.md). Append-only; knows the file, not what the numbers mean. */
#ifndef PITWALL_RECORD_WRITER_H
#define PITWALL_RECORD_WRITER_H

#include <stdint.h>
#include "buffer.h"

typedef struct {
    int fd;            /* -1: closed */
    int error;         /* errno of the first failed write, after which nothing more is written */
    int64_t written;   /* bytes that form whole chunks */
    pw_buffer outbox;  /* whole chunks not yet written */
    uint32_t *hash_table;
} pw_writer;

/* Opens (creating or appending) and locks `path`; writes the magic and the HEAD chunk. Returns 0 or an errno. */
int pw_writer_open(pw_writer *w, const char *path, int append, const char *head, size_t head_size);
/* Appends a chunk to the outbox. */
void pw_writer_chunk(pw_writer *w, const char type[4], const void *bytes, size_t n);
/* Writes the outbox. May wait for the disk. */
void pw_writer_flush(pw_writer *w);
void pw_writer_close(pw_writer *w);
/* In a forked child: the file is the parent's; forget it without writing. */
void pw_writer_abandon(pw_writer *w);

#endif

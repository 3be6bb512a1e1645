/* Writes chunks of the recording (doc/record-format.md). Append-only; knows the file, not what the numbers mean. */
#ifndef PITWALL_RECORD_WRITER_H
#define PITWALL_RECORD_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "tools/buffer.h"

typedef struct {
    int fd;            /* -1: closed */
    /* what it was opened on: programs close descriptors they know nothing of, and get the number for a file of
     * theirs */
    dev_t device;
    ino_t inode;
    int error;         /* errno of the first failed write, after which nothing more is written */
    int64_t written;   /* bytes that form whole chunks */
    int64_t room;      /* where the ROOM chunk begins; 0: there is none */
    _Atomic int64_t limit; /* what the file may grow to; 0: anything */
    _Atomic bool full;     /* it would have: nothing more is written */
    pw_buffer outbox;  /* whole chunks not yet written */
    uint32_t *hash_table;
} pw_writer;

/* Opens (creating or appending) and locks `path`; writes the magic and the HEAD chunk. Returns 0 or an errno. */
int pw_writer_open(pw_writer *w, const char *path, int append, const char *head, size_t head_size);
/* Appends a chunk to the outbox. */
void pw_writer_chunk(pw_writer *w, const char type[4], const void *bytes, size_t n);
/* Appends a chunk of `heads` integers, the last of which mostly is the number of rows, and `n` columns; empties the
 * columns. */
void pw_writer_table(pw_writer *w, const char type[4], int heads, const uint64_t *head, int n, pw_buffer *columns);
/* Writes the outbox. May wait for the disk. */
void pw_writer_flush(pw_writer *w);
/* Where writing failed, says how long the recording would have been. */
void pw_writer_ended(pw_writer *w, uint64_t elapsed_ns);
void pw_writer_close(pw_writer *w);
/* In a forked child: the file is the parent's; forget it without writing. */
void pw_writer_abandon(pw_writer *w);

#endif

/* Writes chunks of the recording (doc/record-format.md). Appends only, except that ROOM is overwritten.
 * Does not know the meaning of the numbers. */
#ifndef PITWALL_RECORD_WRITER_H
#define PITWALL_RECORD_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "tools/buffer.h"

typedef struct {
    int fd;            /* -1: closed */
    /* The identity of the opened file. A program may close the descriptor, and may get the same number for another
     * file. */
    dev_t device;
    ino_t inode;
    int error;         /* errno of the first failed write; nothing is written afterwards */
    int64_t written;   /* bytes that form whole chunks */
    int64_t room;      /* the offset of the ROOM chunk; 0: there is none */
    _Atomic int64_t limit; /* the largest file size in bytes; 0: no limit */
    _Atomic bool full;     /* the limit was reached; nothing more is written */
    pw_buffer outbox;  /* whole chunks not yet written */
    uint32_t *hash_table;
} pw_writer;

/* Opens (creating or appending) and locks `path`; writes the magic and the HEAD chunk. Returns 0 or an errno. */
int pw_writer_open(pw_writer *w, const char *path, int append, const char *head, size_t head_size);
/* Appends a chunk to the outbox. */
void pw_writer_chunk(pw_writer *w, const char type[4], const void *bytes, size_t n);
/* Appends a chunk of `heads` integers and `n` columns, and empties the columns. The last integer mostly is the number
 * of rows. */
void pw_writer_table(pw_writer *w, const char type[4], int heads, const uint64_t *head, int n, pw_buffer *columns);
/* Writes the outbox. May wait for the disk. */
void pw_writer_flush(pw_writer *w);
/* If writing failed, writes the full duration of the recording into the ROOM chunk. */
void pw_writer_ended(pw_writer *w, uint64_t elapsed_ns);
void pw_writer_close(pw_writer *w);
/* In a forked child: closes the descriptor without writing. The file is the parent's. */
void pw_writer_abandon(pw_writer *w);

#endif

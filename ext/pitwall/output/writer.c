#include "output/writer.h"
#include "output/compress.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "PITWALL 1\n"
#define COMPRESS_FROM 64 /* bytes; smaller payloads are not worth resetting the hash table */
enum { HEADER = 20, WORDS = 12 };

static void
put_u32(uint8_t *to, uint32_t n)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(n >> (8 * i));
}

/* Writes without SIGXFSZ. A write beyond RLIMIT_FSIZE raises SIGXFSZ, which kills the process, and stop writes in a
 * thread of the program. So the signal is blocked during the write, and removed if the write caused it. `at`: the
 * offset; < 0: the current position. */
static ssize_t
write_quietly(int fd, const uint8_t *bytes, size_t n, int64_t at)
{
    sigset_t too_large, before, waiting;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    sigpending(&waiting);
    bool was_waiting = sigismember(&waiting, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    ssize_t k = at < 0 ? write(fd, bytes, n) : pwrite(fd, bytes, n, (off_t)at);
    int error = errno;
    if (k < 0 && error == EFBIG && !was_waiting) {
        static const struct timespec now = {0, 0};
        while (sigtimedwait(&too_large, NULL, &now) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return k;
}

/* Is the descriptor still the file that was opened? */
static bool
is_ours(const pw_writer *w)
{
    struct stat st;
    return w->fd >= 0 && fstat(w->fd, &st) == 0 && st.st_dev == w->device && st.st_ino == w->inode;
}

static void
put_header(uint8_t *to, const char type[4], uint8_t compressed, const uint8_t *payload, size_t stored, size_t raw)
{
    memcpy(to, type, 4);
    memset(to + 4, 0, 4);
    to[4] = compressed;
    put_u32(to + 8, (uint32_t)stored);
    put_u32(to + 12, (uint32_t)raw);
    put_u32(to + 16, pw_crc32(0, payload, stored));
}

static void
put_words(uint8_t to[WORDS], int error, uint64_t elapsed_ns)
{
    put_u32(to, (uint32_t)error);
    put_u32(to + 4, (uint32_t)elapsed_ns);
    put_u32(to + 8, (uint32_t)(elapsed_ns >> 32));
}

/* Overwrites the ROOM chunk with an error. The chunk was reserved at the start, because a full disk has no room for
 * another chunk. No other part of the file is overwritten. */
static void
say(pw_writer *w, int error, uint64_t elapsed_ns)
{
    uint8_t chunk[HEADER + WORDS];
    if (!w->room || !is_ours(w)) return;
    put_words(chunk + HEADER, error, elapsed_ns);
    put_header(chunk, "ROOM", 0, chunk + HEADER, WORDS, WORDS);
    int flags = fcntl(w->fd, F_GETFL);
    /* with O_APPEND, Linux appends whatever the offset is */
    if (flags >= 0) fcntl(w->fd, F_SETFL, flags & ~O_APPEND);
    while (write_quietly(w->fd, chunk, sizeof chunk, w->room) < 0 && errno == EINTR) {}
    if (flags >= 0) fcntl(w->fd, F_SETFL, flags);
}

/* Writes one flush. If a write fails half-way, cuts the partial flush off, so that the file ends with a whole chunk. */
static void
write_all(pw_writer *w, const uint8_t *bytes, size_t n)
{
    if (w->fd < 0 || w->error || w->full) return;
    if (pw_lacks_memory()) {
        w->error = ENOMEM;
        say(w, ENOMEM, 0);
        return;
    }
    if (!is_ours(w)) {
        w->error = EBADF;
        return;
    }
    if (w->limit && w->written + (int64_t)n > w->limit) {
        w->full = true;
        say(w, EFBIG, 0);
        return;
    }
    for (size_t done = 0; done < n;) {
        ssize_t k = write_quietly(w->fd, bytes + done, n - done, -1);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            w->error = k < 0 ? errno : ENOSPC;
            if (ftruncate(w->fd, w->written) != 0) { /* a pipe or a full disk may refuse; nothing else can be done */ }
            say(w, w->error, 0);
            return;
        }
        done += (size_t)k;
    }
    w->written += (int64_t)n;
}

int
pw_writer_open(pw_writer *w, const char *path, int append, const char *head, size_t head_size)
{
    *w = (pw_writer){.fd = -1};
    atomic_store(&pw_memory_refused, false);
    /* NONBLOCK: open fails on a named pipe without a reader, instead of waiting. */
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (append ? O_APPEND : O_TRUNC), 0600);
    if (fd < 0) return errno;
    fcntl(fd, F_SETFL, append ? O_APPEND : 0);
    if (fd < 3) { /* never use the number of a closed standard stream */
        int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        int error = errno;
        close(fd);
        if (high < 0) return error;
        fd = high;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    bool regular = S_ISREG(st.st_mode);
    w->device = st.st_dev;
    w->inode = st.st_ino;
    if (regular && append) w->written = st.st_size;
    flock(fd, LOCK_EX | LOCK_NB); /* shows the command that this part is still being written; may fail */
    w->fd = fd;
    w->hash_table = pw_noted(malloc(PW_LZ4_HASH_SIZE * sizeof(uint32_t)));
    pw_buffer_put(&w->outbox, MAGIC, sizeof(MAGIC) - 1);
    pw_writer_chunk(w, "HEAD", head, head_size);
    int64_t room = w->written + (int64_t)w->outbox.size;
    pw_writer_chunk(w, "ROOM", (uint8_t[WORDS]){0}, WORDS);
    pw_writer_flush(w);
    if (regular) w->room = room;
    if (w->error) {
        int error = w->error;
        pw_writer_close(w);
        if (regular && !append) unlink(path); /* an empty file is useless */
        return error;
    }
    return 0;
}

void
pw_writer_chunk(pw_writer *w, const char type[4], const void *bytes, size_t n)
{
    if (w->fd < 0 || w->error || w->full || pw_lacks_memory() || !pw_buffer_room(&w->outbox, HEADER + n)) return;
    uint8_t *header = w->outbox.data + w->outbox.size, *payload = header + HEADER;
    size_t stored = n >= COMPRESS_FROM ? pw_lz4_compress(bytes, n, payload, n, w->hash_table) : 0;
    uint8_t compressed = stored > 0;
    if (!compressed) {
        stored = n;
        if (n) memcpy(payload, bytes, n);
    }
    put_header(header, type, compressed, payload, stored, n);
    w->outbox.size += HEADER + stored;
}

void
pw_writer_table(pw_writer *w, const char type[4], int heads, const uint64_t *head, int n, pw_buffer *columns)
{
    pw_buffer payload = {0};
    for (int i = 0; i < heads; i++) pw_buffer_int(&payload, head[i]);
    for (int i = 0; i < n; i++) {
        pw_buffer_column(&payload, &columns[i]);
        pw_buffer_clear(&columns[i]);
    }
    pw_writer_chunk(w, type, payload.data, payload.size);
    pw_buffer_free(&payload);
}

void
pw_writer_flush(pw_writer *w)
{
    write_all(w, w->outbox.data, w->outbox.size);
    pw_buffer_clear(&w->outbox);
}

void
pw_writer_ended(pw_writer *w, uint64_t elapsed_ns)
{
    if (w->error || w->full) say(w, w->error ? w->error : EFBIG, elapsed_ns);
}

void
pw_writer_abandon(pw_writer *w)
{
    if (is_ours(w)) close(w->fd);
    w->fd = -1;
}

void
pw_writer_close(pw_writer *w)
{
    pw_writer_abandon(w);
    pw_buffer_free(&w->outbox);
    free(w->hash_table);
    w->hash_table = NULL;
}

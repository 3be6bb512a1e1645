#include "record_writer.h"
#include "compress.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "PITWALL 1\n"
#define COMPRESS_FROM 64 /* smaller payloads are not worth a look-up table reset */

static void
put_u32(uint8_t *to, uint32_t n)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(n >> (8 * i));
}

/* A file that may not grow (RLIMIT_FSIZE) kills the writing thread's process by SIGXFSZ, and stop writes in the program's
 * own thread: the signal is held back, and taken away when the write has caused it. */
static ssize_t
write_quietly(int fd, const uint8_t *bytes, size_t n)
{
    sigset_t too_large, before, waiting;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    sigpending(&waiting);
    bool was_waiting = sigismember(&waiting, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    ssize_t k = write(fd, bytes, n);
    int error = errno;
    if (k < 0 && error == EFBIG && !was_waiting) {
        static const struct timespec now = {0, 0};
        while (sigtimedwait(&too_large, NULL, &now) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return k;
}

/* A write that fails half-way must not leave half a flush behind what can be read: cut it off again. */
static void
write_all(pw_writer *w, const uint8_t *bytes, size_t n)
{
    if (w->fd < 0 || w->error) return;
    for (size_t done = 0; done < n;) {
        ssize_t k = write_quietly(w->fd, bytes + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            w->error = k < 0 ? errno : ENOSPC;
            if (ftruncate(w->fd, w->written) != 0) { /* a pipe or a full disk that refuses even that: nothing left to do */ }
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
    /* NONBLOCK: a named pipe that nobody reads is refused instead of waited for. */
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (append ? O_APPEND : O_TRUNC), 0600);
    if (fd < 0) return errno;
    fcntl(fd, F_SETFL, append ? O_APPEND : 0);
    if (fd < 3) { /* never take the place of a closed standard stream */
        int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        int error = errno;
        close(fd);
        if (high < 0) return error;
        fd = high;
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && append) w->written = st.st_size;
    flock(fd, LOCK_EX | LOCK_NB); /* tells the command that this part is still being written; failing is harmless */
    w->fd = fd;
    w->hash_table = pw_must(malloc(PW_LZ4_HASH_SIZE * sizeof(uint32_t)));
    pw_buffer_put(&w->outbox, MAGIC, sizeof(MAGIC) - 1);
    pw_writer_chunk(w, "HEAD", head, head_size);
    pw_writer_flush(w);
    if (w->error) {
        int error = w->error;
        pw_writer_close(w);
        return error;
    }
    return 0;
}

void
pw_writer_chunk(pw_writer *w, const char type[4], const void *bytes, size_t n)
{
    enum { HEADER = 20 };
    if (w->fd < 0 || w->error) return;
    pw_buffer_room(&w->outbox, HEADER + n);
    uint8_t *header = w->outbox.data + w->outbox.size, *payload = header + HEADER;
    size_t stored = n >= COMPRESS_FROM ? pw_lz4_compress(bytes, n, payload, n, w->hash_table) : 0;
    uint8_t compressed = stored > 0;
    if (!compressed) {
        stored = n;
        if (n) memcpy(payload, bytes, n);
    }
    memcpy(header, type, 4);
    memset(header + 4, 0, 4);
    header[4] = compressed;
    put_u32(header + 8, (uint32_t)stored);
    put_u32(header + 12, (uint32_t)n);
    put_u32(header + 16, pw_crc32(0, payload, stored));
    w->outbox.size += HEADER + stored;
}

void
pw_writer_flush(pw_writer *w)
{
    write_all(w, w->outbox.data, w->outbox.size);
    pw_buffer_clear(&w->outbox);
}

void
pw_writer_abandon(pw_writer *w)
{
    if (w->fd >= 0) close(w->fd);
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

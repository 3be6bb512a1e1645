/* Only in a test build (PITWALL_FAULTS=1): the extension's own calls of the C library fail on demand. The calls of the
 * program and of Ruby do not fail, because only the extension is linked with --wrap.
 *
 *   PITWALL_FAULT=ENOSPC:17    of the calls that can fail with ENOSPC the 17th does; "17+": it and all after it
 *   PITWALL_FAULT_COUNT=FILE   appends a line "EMFILE=3 ENFILE=3 …" at the end of each process: how many calls can fail
 *                              with each error
 *
 * Only in recorded processes (PITWALL_PARTS is set). Forked children go on counting. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const struct { const char *name; int error; } known[] = {
    {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM}, {"EINTR", EINTR},
    {"EFBIG", EFBIG},   {"EAGAIN", EAGAIN}, {"EPERM", EPERM},   {"EIO", EIO}};
enum { KNOWN = sizeof known / sizeof *known };
static atomic_long of_error[KNOWN];
static int error_number;
static long at;
static bool from_there_on;
static atomic_long calls;
static const char *count_file;

__attribute__((constructor)) static void
read_wish(void)
{
    const char *wish = getenv("PITWALL_FAULT"), *parts = getenv("PITWALL_PARTS");
    if (!parts) return;
    count_file = getenv("PITWALL_FAULT_COUNT");
    if (!wish) return;
    const char *colon = strchr(wish, ':');
    for (int i = 0; colon && i < KNOWN; i++) {
        size_t length = strlen(known[i].name);
        if (length != (size_t)(colon - wish)) continue;
        if (strncmp(wish, known[i].name, length) == 0) error_number = known[i].error;
    }
    if (!error_number) abort();
    at = strtol(colon + 1, NULL, 10);
    from_there_on = strchr(colon, '+') != NULL;
}

__attribute__((destructor)) static void
tell_count(void)
{
    FILE *file = count_file ? fopen(count_file, "a") : NULL;
    if (!file) return;
    for (int i = 0; i < KNOWN; i++) {
        char separator = i == KNOWN - 1 ? '\n' : ' ';
        fprintf(file, "%s=%ld%c", known[i].name, atomic_load(&of_error[i]), separator);
    }
    fclose(file);
}

/* Of a call that can fail with these errors: is it to? */
static bool
fails(int n, const int *errors)
{
    bool can = false;
    for (int i = 0; i < n; i++) can = can || errors[i] == error_number;
    for (int i = 0; count_file && i < n; i++) {
        for (int k = 0; k < KNOWN; k++) {
            if (known[k].error == errors[i]) atomic_fetch_add(&of_error[k], 1);
        }
    }
    if (!error_number || !can) return false;
    long number = atomic_fetch_add(&calls, 1) + 1;
    return number == at || (from_there_on && number > at);
}

#define FAILS(...) fails((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})
#define WRAP(type, name, parameters, arguments, failure, ...) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters { \
        if (!FAILS(__VA_ARGS__)) return __real_##name arguments; \
        errno = error_number; \
        return failure; \
    }
/* Those that return the error. */
#define WRAP_RETURNING(name, parameters, arguments, ...) \
    int __real_##name parameters; \
    int __wrap_##name parameters; \
    int __wrap_##name parameters { return FAILS(__VA_ARGS__) ? error_number : __real_##name arguments; }

WRAP(void *, malloc, (size_t n), (n), NULL, ENOMEM)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL, ENOMEM)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
WRAP(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o), MAP_FAILED, ENOMEM, EAGAIN)
WRAP(int, mprotect, (void *a, size_t n, int p), (a, n, p), -1, ENOMEM)
WRAP(FILE *, fopen, (const char *p, const char *m), (p, m), NULL, ENOMEM, EMFILE, ENFILE, EINTR)
WRAP(DIR *, opendir, (const char *p), (p), NULL, ENOMEM, EMFILE, ENFILE, EINTR)
WRAP(int, flock, (int fd, int o), (fd, o), -1, EINTR, ENOMEM)
WRAP(int, fstat, (int fd, struct stat *s), (fd, s), -1, EIO)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), -1, EINTR, EFBIG, EIO, ENOSPC, EPERM)
WRAP(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), -1, EINTR, ENOSPC, EFBIG, EIO)
/* Over what is there already: a full disk has room for that. */
WRAP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), -1, EINTR, EIO)
WRAP(ssize_t, pread, (int fd, void *b, size_t n, off_t o), (fd, b, n, o), -1, EINTR, EIO)
WRAP(char *, getcwd, (char *b, size_t n), (b, n), NULL, ENOMEM)
WRAP(ssize_t, readlinkat, (int fd, const char *p, char *b, size_t n), (fd, p, b, n), -1, ENOMEM, EIO)
WRAP(int, timer_create, (clockid_t c, struct sigevent *e, timer_t *t), (c, e, t), -1, EAGAIN, ENOMEM)
WRAP(int, timer_settime, (timer_t t, int f, const struct itimerspec *n, struct itimerspec *o), (t, f, n, o), -1, EPERM)
WRAP(int, sem_wait, (sem_t *s), (s), -1, EINTR)
WRAP(int, nanosleep, (const struct timespec *a, struct timespec *b), (a, b), -1, EINTR)
WRAP(int, sigtimedwait, (const sigset_t *s, siginfo_t *i, const struct timespec *t), (s, i, t), -1, EINTR)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *l, unsigned long n, const struct iovec *r, unsigned long m, unsigned long f),
     (pid, l, n, r, m, f), -1, EPERM, ENOMEM)
WRAP_RETURNING(clock_nanosleep, (clockid_t c, int f, const struct timespec *a, struct timespec *b), (c, f, a, b), EINTR)
WRAP_RETURNING(pthread_create, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *d), (t, a, f, d),
               EAGAIN, EPERM)
WRAP_RETURNING(pthread_getattr_np, (pthread_t t, pthread_attr_t *a), (t, a), ENOMEM, EMFILE)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int
__wrap_open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (!FAILS(EMFILE, ENFILE, ENOSPC, ENOMEM, EINTR, EIO)) return __real_open(path, flags, mode);
    errno = error_number;
    return -1;
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int
__wrap_fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    bool fail = command == F_DUPFD_CLOEXEC ? FAILS(EMFILE) : FAILS(EPERM);
    if (!fail) return __real_fcntl(fd, command, argument);
    errno = error_number;
    return -1;
}

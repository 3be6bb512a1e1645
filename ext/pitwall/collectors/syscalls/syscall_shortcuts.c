#include "collectors/syscalls/syscall_dispatch.h"
#include "collectors/syscalls/syscall_shortcuts.h"

#if PW_DISPATCH && defined(__GLIBC__)

#include "tools/stand_ins.h"
#include "collectors/syscalls/syscall_table.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- the system call of each C function ---- */

/* Source of a system call's argument: an argument of the function (A is the first), or a value that the C library
 * adds. */
enum { NONE, A, B, C, D, FOLDER, EMPTY, EMPTY_PATH, NO_FOLLOW, MODE_C, MODE_D, GET_TERMINAL, SCRATCH };

typedef struct { uint16_t number; uint8_t count, from[4]; } route;

/* CANCELS: the thread may be cancelled in the function. CHECKS_FD, PLAIN_COMMANDS, PLAIN_FLAGS: for some arguments
 * the function does more than make the call; `plain` tells. STATUS: the kernel's answer is 0 or an error. TRUTH: the
 * function returns whether the kernel's answer was 0. */
enum { CANCELS = 1, CHECKS_FD = 2, PLAIN_COMMANDS = 4, PLAIN_FLAGS = 8, STATUS = 16, TRUTH = 32 };

typedef long function(long, long, long, long);

enum { FD = 0x123, PATH = -1, BUFFER = -2, NUMBER = 0x1b, TERMINAL_BYTES = 64 /* more than the kernel's struct */ };

/* A function and its possible routes. find_out calls the function with the arguments `probe` to learn which route
 * this C library takes. */
typedef struct {
    const char *names[2]; /* the second is another name of the same function */
    uint8_t is;
    route routes[2];
    int probe[4];
} known;

enum { OPEN, OPENAT, CLOSE, STAT, LSTAT, FSTAT, FSTATAT, LSEEK, FCNTL, IOCTL, ISATTY, ACCESS, READLINK, READ, PREAD,
      WRITE, FUNCTIONS };

static const known functions[FUNCTIONS] = {
    [OPEN] = {{"open", "open64"}, CANCELS,
              {{PW_NR_OPENAT, 4, {FOLDER, A, B, MODE_C}}, {PW_NR_OPEN, 3, {A, B, MODE_C}}},
                  .probe = {PATH, O_RDWR | O_CREAT, 0640}},
    [OPENAT] = {{"openat", "openat64"}, CANCELS, {{PW_NR_OPENAT, 4, {A, B, C, MODE_D}}},
                .probe = {FD, PATH, O_RDWR | O_CREAT, 0640}},
    [CLOSE] = {{"close"}, CANCELS, {{PW_NR_CLOSE, 1, {A}}}, .probe = {FD}},
    [STAT] = {{"stat", "stat64"}, STATUS, {{PW_NR_NEWFSTATAT, 4, {FOLDER, A, B, NONE}}, {PW_NR_STAT, 2, {A, B}}},
              .probe = {PATH, BUFFER}},
    [LSTAT] = {{"lstat", "lstat64"}, STATUS,
               {{PW_NR_NEWFSTATAT, 4, {FOLDER, A, B, NO_FOLLOW}}, {PW_NR_LSTAT, 2, {A, B}}}, .probe = {PATH, BUFFER}},
    [FSTAT] = {{"fstat", "fstat64"}, STATUS | CHECKS_FD,
               {{PW_NR_NEWFSTATAT, 4, {A, EMPTY, B, EMPTY_PATH}}, {PW_NR_FSTAT, 2, {A, B}}}, .probe = {FD, BUFFER}},
    [FSTATAT] = {{"fstatat", "fstatat64"}, STATUS | PLAIN_FLAGS, {{PW_NR_NEWFSTATAT, 4, {A, B, C, D}}},
                 .probe = {FD, PATH, BUFFER, AT_SYMLINK_NOFOLLOW}},
    [LSEEK] = {{"lseek", "lseek64"}, 0, {{PW_NR_LSEEK, 3, {A, B, C}}}, .probe = {FD, NUMBER, SEEK_CUR}},
    [FCNTL] = {{"fcntl", "fcntl64"}, PLAIN_COMMANDS, {{PW_NR_FCNTL, 3, {A, B, C}}}, .probe = {FD, F_SETFD, NUMBER}},
    [IOCTL] = {{"ioctl"}, 0, {{PW_NR_IOCTL, 3, {A, B, C}}}, .probe = {FD, TCGETS, BUFFER}},
    [ISATTY] = {{"isatty"}, STATUS | TRUTH, {{PW_NR_IOCTL, 3, {A, GET_TERMINAL, SCRATCH}}}, .probe = {FD}},
    [ACCESS] = {{"access"}, 0, {{PW_NR_ACCESS, 2, {A, B}}}, .probe = {PATH, R_OK}},
    [READLINK] = {{"readlink"}, 0, {{PW_NR_READLINK, 3, {A, B, C}}}, .probe = {PATH, BUFFER, NUMBER}},
    [READ] = {{"read"}, CANCELS, {{PW_NR_READ, 3, {A, B, C}}}, .probe = {FD, BUFFER, NUMBER}},
    [PREAD] = {{"pread", "pread64"}, CANCELS, {{PW_NR_PREAD64, 4, {A, B, C, D}}}, .probe = {FD, BUFFER, NUMBER, 5}},
    [WRITE] = {{"write"}, CANCELS, {{PW_NR_WRITE, 3, {A, B, C}}}, .probe = {FD, BUFFER, NUMBER}},
};

/* The C library's function, and the route that the function takes. NULL: the function takes no known route, so
 * Pitwall does not replace the function. */
static function *originals[FUNCTIONS];
static const route *routes[FUNCTIONS];

static bool
needs_mode(long open_flags)
{
    return (open_flags & O_CREAT) || (open_flags & O_TMPFILE) == O_TMPFILE;
}

static uint64_t
argument(uint8_t from, const long given[4], const char *scratch)
{
    switch (from) {
      case A: case B: case C: case D: return (uint64_t)given[from - A];
      case FOLDER: return (uint64_t)AT_FDCWD;
      case EMPTY: return (uint64_t)"";
      case EMPTY_PATH: return AT_EMPTY_PATH;
      case NO_FOLLOW: return AT_SYMLINK_NOFOLLOW;
      case MODE_C: return needs_mode(given[1]) ? (uint32_t)given[2] : 0;
      case MODE_D: return needs_mode(given[2]) ? (uint32_t)given[3] : 0;
      case GET_TERMINAL: return TCGETS;
      case SCRATCH: return (uint64_t)scratch;
      default: return 0;
    }
}

/* Does the C library only make the call for these arguments? False: it may do more. */
static bool
plain(unsigned is, const long given[4])
{
    if (is & CHECKS_FD && (int)given[0] < 0) return false;
    if (is & PLAIN_FLAGS && given[3] & AT_EMPTY_PATH) return false;
    if (!(is & PLAIN_COMMANDS)) return true;
    switch ((int)given[1]) {
      case F_DUPFD: case F_DUPFD_CLOEXEC: case F_GETFD: case F_SETFD: case F_GETFL: case F_SETFL: return true;
      default: return false;
    }
}

static long
result_of(long answer)
{
    if (answer >= 0 || answer < -4095) return answer;
    errno = (int)-answer;
    return -1;
}

static inline long
stand_in(int n, long a, long b, long c, long d)
{
    const long given[4] = {a, b, c, d};
    if (!pw_dispatch_sees() || !plain(functions[n].is, given)) return originals[n](a, b, c, d);
    const route *r = routes[n];
    uint64_t arguments[4] = {0};
    char scratch[TERMINAL_BYTES];
    for (int i = 0; i < r->count; i++) arguments[i] = argument(r->from[i], given, scratch);
    long answer = result_of(pw_dispatch_call(r->number, arguments, functions[n].is & CANCELS));
    return functions[n].is & TRUTH ? answer == 0 : answer;
}

#define STANDS_IN(n) static long in_place_of_##n(long a, long b, long c, long d) { return stand_in(n, a, b, c, d); }
STANDS_IN(OPEN) STANDS_IN(OPENAT) STANDS_IN(CLOSE) STANDS_IN(STAT) STANDS_IN(LSTAT) STANDS_IN(FSTAT) STANDS_IN(FSTATAT) STANDS_IN(LSEEK)
STANDS_IN(FCNTL) STANDS_IN(IOCTL) STANDS_IN(ISATTY) STANDS_IN(ACCESS) STANDS_IN(READLINK) STANDS_IN(READ) STANDS_IN(PREAD) STANDS_IN(WRITE)
#undef STANDS_IN

#define ENTRY(n) [n] = in_place_of_##n
static function *const ours[FUNCTIONS] = {
    ENTRY(OPEN), ENTRY(OPENAT), ENTRY(CLOSE), ENTRY(STAT), ENTRY(LSTAT), ENTRY(FSTAT), ENTRY(FSTATAT), ENTRY(LSEEK),
    ENTRY(FCNTL), ENTRY(IOCTL), ENTRY(ISATTY), ENTRY(ACCESS), ENTRY(READLINK), ENTRY(READ), ENTRY(PREAD), ENTRY(WRITE),
};
#undef ENTRY

/* ---- finding the routes of this C library ---- */

typedef struct { function *call; const long *given; long returned; int error; } trial;

static void
try_it(void *data)
{
    trial *t = data;
    errno = 0;
    t->returned = t->call(t->given[0], t->given[1], t->given[2], t->given[3]);
    t->error = errno;
}

static bool
same_argument(uint8_t from, uint64_t heard, const long given[4])
{
    if (from == EMPTY) return heard && *(const char *)heard == 0;
    if (from == FOLDER) return (int)heard == AT_FDCWD;
    if (from == SCRATCH) return heard != 0;
    return heard == argument(from, given, NULL);
}

/* Does the C library's function make only the call of route `r`, for every answer, and return the answer? */
static bool
takes(function *f, const route *r, unsigned is, const long given[4])
{
    const long answers[] = {-EIO, -ENOSYS, -EINTR, 0, is & STATUS ? 0 : 7};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        trial t = {f, given, 0, 0};
        pw_heard heard;
        if (!pw_dispatch_overhear(try_it, &t, answers[i], &heard) || heard.calls != 1 || heard.number != r->number) {
            return false;
        }
        for (int j = 0; j < r->count; j++) {
            if (!same_argument(r->from[j], heard.arguments[j], given)) return false;
        }
        bool failed = answers[i] < 0;
        long due = is & TRUTH ? !failed : failed ? -1 : answers[i];
        if ((int)t.returned != due || t.error != (failed ? -answers[i] : 0)) return false;
    }
    return true;
}

static void
find_out(int n, void *libc)
{
    static char path[] = "/", buffer[512];
    const known *k = &functions[n];
    function *f = (function *)dlsym(libc, k->names[0]);
    if (!f || (k->names[1] && dlsym(libc, k->names[1]) != (void *)f)) return;
    long given[4], bare[4];
    for (int i = 0; i < 4; i++) {
        given[i] = k->probe[i] == PATH ? (long)path : k->probe[i] == BUFFER ? (long)buffer : k->probe[i];
        bare[i] = given[i] == (O_RDWR | O_CREAT) ? O_RDWR : given[i]; /* without O_CREAT, which alone needs the mode */
    }
    for (int i = 0; i < 2 && k->routes[i].count; i++) {
        if (!takes(f, &k->routes[i], k->is, given) || !takes(f, &k->routes[i], k->is, bare)) continue;
        originals[n] = f;
        routes[n] = &k->routes[i];
        break;
    }
}

/* ---- installing and removing ---- */

enum { NAMES = 2 };
static pw_stand_in entries[FUNCTIONS * NAMES];
static pw_stand_ins stand_ins = {.entries = entries, .count = FUNCTIONS * NAMES};

/* Does a lookup of each of the function's names find the C library's function? */
static bool
is_reached(int n)
{
    const char *const *names = functions[n].names;
    if (!routes[n] || dlsym(RTLD_DEFAULT, names[0]) != (void *)originals[n]) return false;
    return !names[1] || dlsym(RTLD_DEFAULT, names[1]) == (void *)originals[n];
}

void
pw_shortcuts_install(void)
{
    static bool tried;
    const char *off = getenv("PITWALL_SYSCALL_SHORTCUTS");
    if (stand_ins.installed || (off && strcmp(off, "0") == 0)) return;
    if (!tried) {
        tried = true;
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        for (int n = 0; libc && n < FUNCTIONS; n++) find_out(n, libc);
        if (libc) dlclose(libc);
    }
    for (int n = 0; n < FUNCTIONS; n++) {
        bool reached = is_reached(n);
        for (int i = 0; i < NAMES; i++) {
            const char *name = functions[n].names[i];
            void *original = routes[n] && name ? (void *)originals[n] : NULL;
            entries[n * NAMES + i] = (pw_stand_in){name, (void *)ours[n], original, .unbound = reached,
                                                   .of_ruby = true};
        }
    }
    pw_stand_ins_install(&stand_ins);
}

void pw_shortcuts_remove(void) { pw_stand_ins_remove(&stand_ins); }

#else

void pw_shortcuts_install(void) {}
void pw_shortcuts_remove(void) {}

#endif

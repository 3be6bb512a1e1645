#include "syscall_dispatch.h"
#include "syscall_shortcuts.h"

#if PW_DISPATCH && defined(__GLIBC__)

#include "syscall_table.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#undef snprintf

/* ---- what a function asks of the kernel ---- */

/* Where an argument of the system call comes from: the function's own, by number, or what the C library puts there. */
enum { NONE, A, B, C, D, FOLDER, EMPTY, EMPTY_PATH, NO_FOLLOW, MODE_C, MODE_D, GET_TERMINAL, SCRATCH };

typedef struct { uint16_t number; uint8_t count, from[4]; } route;

/* CANCELS: the thread may be cancelled in it. CHECKS_FD, PLAIN_COMMANDS, PLAIN_FLAGS: it does more for some arguments (`plain`).
 * STATUS: the kernel's answer is 0 or an error. TRUTH: it returns whether that was 0. */
enum { CANCELS = 1, CHECKS_FD = 2, PLAIN_COMMANDS = 4, PLAIN_FLAGS = 8, STATUS = 16, TRUTH = 32 };

typedef long function(long, long, long, long);

enum { FD = 0x123, PATH = -1, BUFFER = -2, NUMBER = 0x1b, TERMINAL_BYTES = 64 /* the kernel's struct, and some */ };

/* Of two routes the one that this C library takes is found out, by trying the function with the arguments `probe`. */
typedef struct {
    const char *names[2]; /* the second is the same function by another name */
    uint8_t is;
    route routes[2];
    int probe[4];
} known;

enum { OPEN, OPENAT, CLOSE, STAT, LSTAT, FSTAT, FSTATAT, LSEEK, FCNTL, IOCTL, ISATTY, ACCESS, READLINK, READ, PREAD, WRITE, FUNCTIONS };

static const known functions[FUNCTIONS] = {
    [OPEN] = {{"open", "open64"}, CANCELS, {{PW_NR_OPENAT, 4, {FOLDER, A, B, MODE_C}}, {PW_NR_OPEN, 3, {A, B, MODE_C}}}, .probe = {PATH, O_RDWR | O_CREAT, 0640}},
    [OPENAT] = {{"openat", "openat64"}, CANCELS, {{PW_NR_OPENAT, 4, {A, B, C, MODE_D}}}, .probe = {FD, PATH, O_RDWR | O_CREAT, 0640}},
    [CLOSE] = {{"close"}, CANCELS, {{PW_NR_CLOSE, 1, {A}}}, .probe = {FD}},
    [STAT] = {{"stat", "stat64"}, STATUS, {{PW_NR_NEWFSTATAT, 4, {FOLDER, A, B, NONE}}, {PW_NR_STAT, 2, {A, B}}}, .probe = {PATH, BUFFER}},
    [LSTAT] = {{"lstat", "lstat64"}, STATUS, {{PW_NR_NEWFSTATAT, 4, {FOLDER, A, B, NO_FOLLOW}}, {PW_NR_LSTAT, 2, {A, B}}}, .probe = {PATH, BUFFER}},
    [FSTAT] = {{"fstat", "fstat64"}, STATUS | CHECKS_FD, {{PW_NR_NEWFSTATAT, 4, {A, EMPTY, B, EMPTY_PATH}}, {PW_NR_FSTAT, 2, {A, B}}}, .probe = {FD, BUFFER}},
    [FSTATAT] = {{"fstatat", "fstatat64"}, STATUS | PLAIN_FLAGS, {{PW_NR_NEWFSTATAT, 4, {A, B, C, D}}}, .probe = {FD, PATH, BUFFER, AT_SYMLINK_NOFOLLOW}},
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

/* The C library's function, and the route it takes; NULL: it does something else, and is left alone. */
static function *originals[FUNCTIONS];
static const route *routes[FUNCTIONS];
static const void *inside_libc;

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

/* May the C library do more for these arguments than make the call? */
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

/* ---- what this C library does ---- */

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

/* Does the C library's function make that one call, whatever it is answered, and return the answer? */
static bool
takes(function *f, const route *r, unsigned is, const long given[4])
{
    const long answers[] = {-EIO, -ENOSYS, -EINTR, 0, is & STATUS ? 0 : 7};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        trial t = {f, given, 0, 0};
        pw_heard heard;
        if (!pw_dispatch_overhear(try_it, &t, answers[i], &heard) || heard.calls != 1 || heard.number != r->number) return false;
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
        bare[i] = given[i] == (O_RDWR | O_CREAT) ? O_RDWR : given[i]; /* without what the mode is for */
    }
    for (int i = 0; i < 2 && k->routes[i].count; i++) {
        if (!takes(f, &k->routes[i], k->is, given) || !takes(f, &k->routes[i], k->is, bare)) continue;
        inside_libc = (const void *)f;
        originals[n] = f;
        routes[n] = &k->routes[i];
        break;
    }
}

/* ---- loaded objects ---- */

typedef struct {
    uintptr_t base, from, to; /* of what is read-only once the object has been loaded */
    const Elf64_Sym *symbols;
    const char *names;
    bool opened;
} object;

/* What cannot be written, when we began. */
static struct { uintptr_t from, to; } *closed;
static size_t closed_count;

/* Is a function looked up by that name the C library's? */
static bool reached[FUNCTIONS];

static bool
covers(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (uintptr_t)address - info->dlpi_addr - part->p_vaddr < part->p_memsz) return true;
    }
    return false;
}

/* Which of ours belongs into a slot that holds `value`; -1: none. A slot that is to be filled at the first call holds an address in its object. */
static int
wanted(const struct dl_phdr_info *info, const object *o, const Elf64_Rela *r, void *value)
{
    for (int n = 0; n < FUNCTIONS; n++) {
        if (routes[n] && value == (void *)originals[n]) return n;
    }
    const Elf64_Sym *symbol = &o->symbols[ELF64_R_SYM(r->r_info)];
    if (ELF64_R_TYPE(r->r_info) != R_X86_64_JUMP_SLOT || symbol->st_shndx != SHN_UNDEF || !covers(info, value)) return -1;
    const char *name = o->names + symbol->st_name;
    for (int n = 0; n < FUNCTIONS; n++) {
        if (!routes[n] || (strcmp(name, functions[n].names[0]) != 0 && (!functions[n].names[1] || strcmp(name, functions[n].names[1]) != 0))) continue;
        return reached[n] ? n : -1;
    }
    return -1;
}

static int
one_of_ours(void *value)
{
    for (int n = 0; n < FUNCTIONS; n++) {
        if (value == (void *)ours[n]) return n;
    }
    return -1;
}

static void
list_closed(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    size_t room = 0;
    closed_count = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char write;
        if (sscanf(line, "%lx-%lx %*c%c", &from, &to, &write) != 3 || write == 'w') continue;
        if (closed_count == room) {
            room = room ? room * 2 : 512;
            void *larger = realloc(closed, room * sizeof *closed);
            if (!larger) break;
            closed = larger;
        }
        closed[closed_count].from = from;
        closed[closed_count++].to = to;
    }
    if (maps) fclose(maps);
}

static bool
is_closed(uintptr_t address)
{
    for (size_t i = 0; i < closed_count; i++) {
        if (address >= closed[i].from && address < closed[i].to) return true;
    }
    return false;
}

/* Makes a slot writable. What is to be closed and is not may belong to an object that another thread is loading and closes any moment: none of ours there. */
static bool
open_slot(object *o, uintptr_t slot, bool install)
{
    if (slot < o->from || slot >= o->to || o->opened) return true;
    if (!is_closed(slot)) return !install;
    o->opened = mprotect((void *)o->from, o->to - o->from, PROT_READ | PROT_WRITE) == 0;
    return o->opened;
}

static void
change(const struct dl_phdr_info *info, object *o, const Elf64_Rela *table, size_t bytes, bool install)
{
    for (size_t i = 0; i < bytes / sizeof *table; i++) {
        const Elf64_Rela *r = &table[i];
        uint32_t type = ELF64_R_TYPE(r->r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
        _Atomic(void *) *slot = (_Atomic(void *) *)(o->base + r->r_offset);
        void *value = atomic_load(slot);
        int n = install ? wanted(info, o, r, value) : one_of_ours(value);
        if (n >= 0 && open_slot(o, (uintptr_t)slot, install)) atomic_compare_exchange_strong(slot, &value, install ? (void *)ours[n] : (void *)originals[n]);
    }
}

static int
visit(struct dl_phdr_info *info, size_t size, void *data)
{
    bool install = *(bool *)data;
    /* Our own calls are not the program's, and the C library knows what it does. */
    if (covers(info, (const void *)pw_shortcuts_install) || covers(info, inside_libc)) return 0;
    object o = {.base = info->dlpi_addr};
    const Elf64_Dyn *dynamic = NULL;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn *)(o.base + part->p_vaddr);
        if (part->p_type == PT_GNU_RELRO) {
            o.from = (o.base + part->p_vaddr) & ~(page - 1);
            o.to = (o.base + part->p_vaddr + part->p_memsz) & ~(page - 1);
        }
    }
    const Elf64_Rela *tables[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr, there = value < o.base ? o.base + value : value;
        switch (dynamic->d_tag) {
          case DT_SYMTAB: o.symbols = (const Elf64_Sym *)there; break;
          case DT_STRTAB: o.names = (const char *)there; break;
          case DT_RELA: tables[0] = (const Elf64_Rela *)there; break;
          case DT_RELASZ: sizes[0] = value; break;
          case DT_JMPREL: tables[1] = (const Elf64_Rela *)there; break;
          case DT_PLTRELSZ: sizes[1] = value; break;
        }
    }
    for (int i = 0; i < 2 && o.symbols && o.names; i++) {
        if (tables[i]) change(info, &o, tables[i], sizes[i], install);
    }
    if (o.opened) mprotect((void *)o.from, o.to - o.from, PROT_READ);
    return 0;
}

/* ---- in and out ---- */

static bool installed;

static void
visit_all(bool install)
{
    installed = install;
    if (!inside_libc) return;
    list_closed();
    dl_iterate_phdr(visit, &install);
    free(closed);
    closed = NULL;
    closed_count = 0;
}

void
pw_shortcuts_install(void)
{
    static bool tried;
    const char *off = getenv("PITWALL_SYSCALL_SHORTCUTS");
    if (installed || (off && strcmp(off, "0") == 0)) return;
    if (!tried) {
        tried = true;
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        for (int n = 0; libc && n < FUNCTIONS; n++) find_out(n, libc);
        if (libc) dlclose(libc);
    }
    for (int n = 0; n < FUNCTIONS; n++) {
        const char *const *names = functions[n].names;
        reached[n] = routes[n] && dlsym(RTLD_DEFAULT, names[0]) == (void *)originals[n] && (!names[1] || dlsym(RTLD_DEFAULT, names[1]) == (void *)originals[n]);
    }
    visit_all(true);
}

/* Whoever is in one of ours, or kept its address, goes on there. */
void
pw_shortcuts_remove(void)
{
    if (installed) visit_all(false);
}

#else

void pw_shortcuts_install(void) {}
void pw_shortcuts_remove(void) {}

#endif

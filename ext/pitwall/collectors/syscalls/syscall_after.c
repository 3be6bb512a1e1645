#include "tools/general_registers.h"
#include "collectors/syscalls/syscall_after.h"

#if PW_DISPATCH

#if !PW_GENERAL_REGISTERS_ONLY
# error "the program's vector registers would be lost"
#endif

#include "tools/readable.h"
#include <errno.h>
#include <time.h>

pw_syscall_count pw_syscall_counts[PW_SYSCALLS];
_Atomic uint32_t pw_syscall_generation;
_Atomic int pw_syscall_at_work;
_Atomic uint64_t pw_syscall_lost, pw_syscall_waits;
_Atomic uint64_t pw_syscall_no_room_since;
pw_ring *pw_syscall_ring;
bool pw_syscall_steady;

enum { LONGEST = 4096, SHORT = 256, HERE = -100, NOWHERE = -1, NR_CLOCK = 228, PAUSE_NS = 100000 };
static const uint64_t patience_ns = 2000000000;

uint64_t
pw_syscall_clock(void)
{
    struct timespec t = {0, 0};
    pw_raw_syscall(NR_CLOCK, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool
pw_syscall_pause(void)
{
    if (atomic_load(&pw_syscall_generation) == 0) return false;
    uint64_t now = pw_syscall_clock(), since = 0;
    if (!atomic_compare_exchange_strong(&pw_syscall_no_room_since, &since, now) && now > since + patience_ns) {
        return false;
    }
    struct timespec pause = {0, PAUSE_NS};
    pw_raw_syscall(PW_NR_NANOSLEEP, (long)&pause, 0, 0, 0, 0, 0);
    return true;
}

static inline char *
copy(char *to, const char *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return to;
}

/* Did the kernel read the path? Then the path is readable. Some errors may occur before the kernel reads the path. */
static bool
was_read(int64_t result)
{
    switch (-result) {
      case EFAULT: case EINVAL: case ENOSYS: case EPERM: case E2BIG: case EBADF: case ENOMEM: case EMFILE: case ENFILE: return false;
      default: return true;
    }
}

/* Reads whole aligned words, so a read may go past the string's end, but never across a page. Not instrumented by
 * AddressSanitizer. */
static __attribute__((no_sanitize("address"))) size_t
length(const char *s, bool trusted)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    size_t n = 0;
    if (!trusted && !pw_readable((uintptr_t)s & ~(uintptr_t)7)) return 0;
    while ((uintptr_t)(s + n) % 8) {
        if (!s[n]) return n;
        n++;
    }
    for (; n < LONGEST; n += 8) {
        if (!trusted && (uintptr_t)(s + n) % 4096 == 0 && !pw_readable((uintptr_t)(s + n))) return n;
        uint64_t word = *(const uint64_t *)(s + n), zeros = (word - ones) & ~word & tops;
        if (zeros) return n + (size_t)__builtin_ctzll(zeros) / 8;
    }
    return LONGEST;
}

typedef struct { const char *bytes; size_t size; bool any; } text;

static text
path_of(const pw_call_frame *call, int argument)
{
    if (!argument) return (text){0};
    const char *address = (const char *)call->arguments[argument - 1];
    if (!address) return (text){0};
    bool trusted = was_read(call->result);
    if (call->number == PW_NR_GETCWD) {
        return call->result > 0 &&
               call->result <= LONGEST ? (text){address, (size_t)call->result - 1, true} : (text){0};
    }
    size_t n = length(address, trusted);
    return n || trusted ? (text){address, n, true} : (text){0};
}

static pw_syscall_row *
room(size_t bytes)
{
    bool waited = false;
    do {
        pw_syscall_row *row = (pw_syscall_row *)pw_ring_reserve(pw_syscall_ring,
                                                                (uint32_t)(sizeof(pw_syscall_row) + bytes));
        if (row) {
            if (atomic_load_explicit(&pw_syscall_no_room_since, memory_order_relaxed)) {
                atomic_store(&pw_syscall_no_room_since, 0);
            }
            return row;
        }
        if (!waited) atomic_fetch_add_explicit(&pw_syscall_waits, 1, memory_order_relaxed);
        waited = true;
    } while (pw_syscall_pause());
    atomic_fetch_add(&pw_syscall_lost, 1);
    return NULL;
}

/* Writes the path of the folder `fd`, or of the working directory (HERE). Returns its size in bytes. The result
 * `room` means that the path may be longer than `room`. */
static size_t
path_of_folder(int fd, char *to, size_t room)
{
    if (fd == HERE) {
        long size = pw_raw_syscall(PW_NR_GETCWD, (long)to, (long)room, 0, 0, 0, 0);
        return size > 1 ? (size_t)size - 1 : size == -ERANGE ? room : 0;
    }
    char link[32] = "/proc/self/fd/", digits[12];
    int n = 0, at = 14;
    unsigned rest = (unsigned)fd;
    do digits[n++] = (char)('0' + rest % 10); while (rest /= 10);
    while (n) link[at++] = digits[--n];
    link[at] = 0;
    long size = pw_raw_syscall(PW_NR_READLINK, (long)link, (long)to, (long)room, 0, 0, 0);
    return size > 0 ? (size_t)size : 0;
}

/* A text with a size but without bytes is a folder's path. Its size is only an upper limit: the path is read straight
 * into the row. */
static void
put(const pw_call_frame *call, const pw_syscall *known, int32_t fd, const text texts[4], const int folders[2])
{
    size_t sum = texts[0].size + texts[1].size + texts[2].size + texts[3].size;
    pw_syscall_row *row = room(sum);
    if (!row) return;
    row->header.kind = PW_REC_SYSCALL;
    row->thread = call->thread;
    row->start = call->start;
    row->end = call->end;
    row->result = call->result;
    row->serial = call->serial;
    row->fd = fd;
    row->flags = known->flags ? (uint32_t)call->arguments[known->flags - 1] : 0;
    row->number = (uint16_t)call->number;
    char *to = row->bytes;
    for (int i = 0; i < 4; i++) {
        size_t size = texts[i].size;
        if (texts[i].bytes) to = copy(to, texts[i].bytes, size);
        else if (size) to += size = path_of_folder(folders[i - 2], to, size);
        row->sizes[i] = texts[i].any || i > 1 ? (uint16_t)size : PW_NO_PATH;
    }
    pw_ring_commit(&row->header, (uint32_t)(sizeof(pw_syscall_row) + sum));
}

static int
folder_of(const pw_call_frame *call, int argument, const text *path)
{
    if (!argument || !path->any || (path->size && path->bytes[0] == '/')) return NOWHERE;
    int fd = (int)call->arguments[argument - 1];
    return fd == HERE ? NOWHERE : fd;
}

static void
tell(const pw_call_frame *call)
{
    const pw_syscall *known = &pw_syscalls_known[call->number];
    int32_t fd = known->fd ? (int32_t)call->arguments[known->fd - 1] : -1;
    text texts[4] = {path_of(call, known->path), path_of(call, known->path2), {0}, {0}};
    int folders[2] = {folder_of(call, known->base, &texts[0]), folder_of(call, known->base2, &texts[1])};
    if (folders[0] >= 0 && texts[0].size == 0) { /* AT_EMPTY_PATH: the call is about the folder itself */
        fd = folders[0];
        folders[0] = NOWHERE;
        texts[0].any = false;
    }
    if ((call->number == PW_NR_CHDIR || call->number == PW_NR_FCHDIR) && call->result == 0) folders[0] = HERE;
    char shorts[2][SHORT]; /* enough for most paths; the stack has no room for the longest */
    for (int i = 0; i < 2; i++) {
        if (folders[i] < 0 && folders[i] != HERE) continue;
        size_t size = path_of_folder(folders[i], shorts[i], SHORT);
        texts[2 + i] = size < SHORT ? (text){shorts[i], size, true} : (text){NULL, LONGEST, true};
    }
    put(call, known, fd, texts, folders);
}

void
pw_syscall_after(pw_call_frame *call)
{
    PW_SYSCALL_MEET_STACK_END();
    atomic_fetch_add(&pw_syscall_at_work, 1);
    if (call->generation == atomic_load(&pw_syscall_generation)) {
        if (!pw_syscall_steady) {
            call->end = pw_syscall_clock();
            call->start = call->scratch[0];
        }
        pw_syscall_count *count = &pw_syscall_counts[call->number];
        atomic_fetch_add_explicit(&count->calls, 1, memory_order_relaxed);
        if (call->result < 0 && call->result >= -4095) {
            atomic_fetch_add_explicit(&count->errors, 1, memory_order_relaxed);
        }
        atomic_fetch_add_explicit(&count->ticks, call->end - call->start, memory_order_relaxed);
        if (pw_syscall_ring) tell(call);
    }
    atomic_fetch_sub(&pw_syscall_at_work, 1);
}

#endif

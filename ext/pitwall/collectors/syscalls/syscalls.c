/* File-system calls of every Ruby thread: name, path, result, duration and stack of each call.
 *
 * syscall_dispatch.c notices each call. This file takes the thread's stack before the call. syscall_after.c puts a
 * row into the ring after the call. The drain makes paths absolute, using the working directory and the descriptors
 * known from earlier rows. The drain then turns rows into columns. */
#include "collectors/syscalls/syscalls.h"
#include "collectors/syscalls/syscall_after.h"
#include "collectors/syscalls/syscall_dispatch.h"
#include "collectors/syscalls/syscall_shortcuts.h"
#include "collectors/syscalls/syscall_table.h"
#include "output/drain.h"
#include "output/output.h"
#include "sampling/capture.h"
#include "tools/settings.h"
#include "tools/tick_clock.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#undef snprintf /* Ruby's snprintf may allocate objects, and the drain has no GVL */

enum { ROWS_A_CHUNK = 1 << 14, MOST_FDS = 1 << 16, NO_STACK = UINT32_MAX, EXPECTED_BYTES = 256 };
enum { THREAD, NAME, AT, NS, RESULT, ERRNO, FLAGS, NODE, PATH, PATH2, CWD, COLUMNS };

static struct {
    bool active, stacks;
    pw_tick_clock the_clock;
    char cwd[PATH_MAX];
    size_t cwd_size;
    uint32_t cwd_id;
    struct descriptor { uint32_t path; uint64_t since; } *descriptors; /* path; end of the opening call */
    uint32_t descriptor_count;
    uint32_t name_ids[PW_SYSCALLS];
    pw_buffer columns[COLUMNS];
    uint32_t rows;
    uint64_t base_ns, rows_taken;
} state;

static int (*const during_gc)(void) = rb_during_gc; /* resolved here: a handler must not resolve symbols */

/* ---- in the handler ---- */

#if PW_DISPATCH
/* async-signal-safe */
static void
before(pw_call_frame *call)
{
    if (!pw_syscall_steady) call->scratch[0] = pw_syscall_clock();
    pw_thread *t = pw_self();
    call->serial = NO_STACK;
    if (pw_syscall_ring) pw_ring_expect(pw_syscall_ring, EXPECTED_BYTES);
    if (!t || t->sample.finished) return;
    call->thread = t;
    /* During GC, the objects that a stack refers to may be moving. */
    if (!state.stacks || !pw_syscall_ring || t->own.busy || during_gc()) return;
    do {
        if (pw_capture_stack(t)) {
            call->serial = t->sample.serial;
            return;
        }
    } while (pw_syscall_pause());
}
#else
static void before(pw_call_frame *call) {}
#endif

/* Writes the recorded data before the process becomes another program, or ends without running its exit code. */
static void
ending(void)
{
    pw_flush_before_end();
}

/* ---- paths, in the drain ---- */

static uint32_t intern(const char *bytes, size_t size) { return pw_intern_string(&pw_out.tables, bytes, size); }

static uint32_t
name_id(int number)
{
    if (!state.name_ids[number]) {
        state.name_ids[number] = intern(pw_syscalls_known[number].name, strlen(pw_syscalls_known[number].name));
    }
    return state.name_ids[number];
}

static uint32_t
absolute(const char *path, size_t size, const char *folder, size_t folder_size)
{
    static char joined[2 * PATH_MAX + 2];
    while (size >= 2 && path[0] == '.' && path[1] == '/') path += 2, size -= 2;
    if (size && path[0] == '/') return intern(path, size);
    if (!folder_size) return intern(path, size); /* the folder is unknown: the path stays relative */
    if (size == 0 || (size == 1 && path[0] == '.')) return intern(folder, folder_size);
    if (folder_size > PATH_MAX || size > PATH_MAX) return intern(path, size);
    memcpy(joined, folder, folder_size);
    size_t at = folder_size;
    if (joined[at - 1] != '/') joined[at++] = '/';
    memcpy(joined + at, path, size);
    return intern(joined, at + size);
}

static struct descriptor *
descriptor(int64_t fd)
{
    if (fd < 0 || fd >= MOST_FDS) return NULL;
    if (fd >= state.descriptor_count) {
        uint32_t room = state.descriptor_count ? state.descriptor_count : 256;
        while (room <= fd) room *= 2;
        struct descriptor *larger = realloc(state.descriptors, room * sizeof(*larger));
        if (!larger) return NULL;
        memset(larger + state.descriptor_count, 0, (room - state.descriptor_count) * sizeof(*larger));
        state.descriptors = larger;
        state.descriptor_count = room;
    }
    return &state.descriptors[fd];
}

static uint32_t
path_of_descriptor(int64_t fd)
{
    return fd >= 0 && fd < state.descriptor_count ? state.descriptors[fd].path : 0;
}

static void
opened(int64_t fd, uint32_t path, uint64_t when)
{
    struct descriptor *d = descriptor(fd);
    if (d && when >= d->since) *d = (struct descriptor){path, when};
}

/* Rows of several threads may arrive in another order than their calls. A close that began before the descriptor was
 * opened closed the previous descriptor of that number, so ignore the close. */
static void
closed(int64_t fd, uint64_t began)
{
    if (fd >= 0 && fd < state.descriptor_count && began >= state.descriptors[fd].since) state.descriptors[fd].path = 0;
}

enum { DUPLICATE = 0, DUPLICATE_CLOEXEC = 1030 };

/* Updates the state that later rows depend on: descriptors and the working directory. */
static void
follow(const pw_syscall_row *row, uint32_t path, const char *folder)
{
    switch (row->number) {
      case PW_NR_OPEN: case PW_NR_CREAT: case PW_NR_OPENAT: case PW_NR_OPENAT2:
        if (row->result >= 0) opened(row->result, path, row->end);
        break;
      case PW_NR_DUP: case PW_NR_DUP2: case PW_NR_DUP3:
        if (row->result >= 0) opened(row->result, path_of_descriptor(row->fd), row->end);
        break;
      case PW_NR_FCNTL:
        if (row->result >= 0 && (row->flags == DUPLICATE || row->flags == DUPLICATE_CLOEXEC)) {
            opened(row->result, path_of_descriptor(row->fd), row->end);
        }
        break;
      case PW_NR_SOCKET: case PW_NR_ACCEPT: case PW_NR_ACCEPT4:
        if (row->result >= 0) opened(row->result, 0, row->end);
        break;
      case PW_NR_CLOSE:
        if (row->result != -EBADF) closed(row->fd, row->start);
        break;
      case PW_NR_CHDIR: case PW_NR_FCHDIR:
        if (row->result != 0 || !row->sizes[2] || row->sizes[2] > sizeof state.cwd) break;
        memcpy(state.cwd, folder, row->sizes[2]);
        state.cwd_size = row->sizes[2];
        state.cwd_id = intern(state.cwd, state.cwd_size);
        break;
    }
}

static uint32_t
node_of(const pw_syscall_row *row)
{
    const pw_thread *t = row->thread;
    if (!t || row->serial == NO_STACK) return 0;
    return t->drain.stack_serial - row->serial < PW_KEPT_STACKS ? t->drain.stack_nodes[row->serial % PW_KEPT_STACKS] : 0;
}

static uint64_t
ns_at(uint64_t tick, double tick_ns)
{
    double ns = ((double)tick - (double)state.the_clock.tick_from) * tick_ns + (double)(state.the_clock.ns_from - pw_current.origin);
    return ns > 0 ? (uint64_t)ns : 0;
}

static void
put(int column, uint64_t value)
{
    pw_buffer_int(&state.columns[column], value);
}

/* Adds a row to the columns. True: the columns hold a full chunk of rows. holds session lock */
static bool
take(const pw_record_header *record)
{
    const pw_syscall_row *row = (const pw_syscall_row *)record;
    static double tick_ns;
    if (!state.active) return false;
    if (state.rows == 0 || tick_ns == 0) tick_ns = pw_tick_clock_tick_ns(&state.the_clock);
    const char *texts[4] = {row->bytes};
    size_t sizes[4];
    for (int i = 0; i < 4; i++) {
        sizes[i] = row->sizes[i] == PW_NO_PATH ? 0 : row->sizes[i];
        if (i < 3) texts[i + 1] = texts[i] + sizes[i];
    }
    bool moves = row->number == PW_NR_CHDIR || row->number == PW_NR_FCHDIR;
    /* The first path of such a call is the link's text, which is not made absolute. */
    bool link = row->number == PW_NR_SYMLINK || row->number == PW_NR_SYMLINKAT;
    uint32_t paths[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (row->sizes[i] == PW_NO_PATH) continue;
        if (link && i == 0) paths[i] = intern(texts[i], sizes[i]);
        else if (sizes[2 + i] && !moves) paths[i] = absolute(texts[i], sizes[i], texts[2 + i], sizes[2 + i]);
        else paths[i] = absolute(texts[i], sizes[i], state.cwd, state.cwd_size);
    }
    if (!paths[0] && row->fd >= 0) paths[0] = path_of_descriptor(row->fd);

    uint64_t at = ns_at(row->start, tick_ns);
    /* A later row's call may have begun earlier, so the base is 1 s before this row's start. */
    if (state.rows == 0) state.base_ns = at > 1000000000 ? at - 1000000000 : 0;
    bool failed = row->result < 0 && row->result >= -4095;
    put(THREAD, row->thread ? ((const pw_thread *)row->thread)->id : 0);
    put(NAME, name_id(row->number));
    put(AT, at > state.base_ns ? at - state.base_ns : 0);
    put(NS, (uint64_t)((double)(row->end - row->start) * tick_ns));
    put(RESULT, failed || row->result < 0 ? 0 : (uint64_t)row->result);
    put(ERRNO, failed ? (uint64_t)-row->result : 0);
    put(FLAGS, pw_syscalls_known[row->number].flags ? (uint64_t)row->flags + 1 : 0);
    put(NODE, node_of(row));
    put(PATH, paths[0]);
    put(PATH2, paths[1]);
    put(CWD, state.cwd_id);
    state.rows++;
    state.rows_taken++;
    follow(row, paths[0], texts[2]);
    return state.rows >= ROWS_A_CHUNK;
}

/* ---- chunks ---- */

static void
write_rows(bool last)
{
    if (!state.rows) return;
    pw_writer_table(&pw_out.writer, "SYSC", 2, (uint64_t[]){state.base_ns, state.rows}, COLUMNS, state.columns);
    state.rows = 0;
}

/* Writes totals since the start of the recording. Readers use the last totals only. */
static void
write_totals(bool last)
{
#if PW_DISPATCH
    enum { TOTALS = 4 };
    pw_buffer totals[TOTALS] = {{0}};
    double tick_ns = pw_syscall_steady ? pw_tick_clock_tick_ns(&state.the_clock) : 1.0;
    uint32_t n = 0;
    uint64_t sum = 0, lost = atomic_load(&pw_syscall_lost);
    for (int i = 0; i < PW_SYSCALLS; i++) {
        pw_syscall_count *count = &pw_syscall_counts[i];
        uint64_t calls = atomic_load(&count->calls);
        if (!calls) continue;
        uint64_t values[TOTALS] = {name_id(i), calls, atomic_load(&count->errors),
                                   (uint64_t)((double)atomic_load(&count->ticks) * tick_ns)};
        pw_buffer_row(totals, values, TOTALS);
        sum += calls;
        n++;
    }
    /* At the end, count two more kinds of rows as lost. Some threads left by a jump before their row was written.
     * The drain does not reach the rows that lie behind such a row in the ring. */
    if (last && pw_syscall_ring && sum > state.rows_taken && sum - state.rows_taken > lost) {
        lost = sum - state.rows_taken;
    }
    uint64_t head[] = {pw_dispatch_flags(), lost, pw_dispatch_refused(), n};
    pw_writer_table(&pw_out.writer, "SYST", 4, head, TOTALS, totals);
    pw_buffers_free(totals, TOTALS);
#endif
}

/* ---- start and stop ---- */

/* Enters the descriptors that are open at the start. */
static void
seed_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[PATH_MAX];
        int fd = atoi(entry->d_name);
        ssize_t size = entry->d_name[0] == '.' ||
                       fd == dirfd(folder) ? 0 : readlinkat(dirfd(folder), entry->d_name, path, sizeof path);
        if (size > 0) opened(fd, intern(path, (size_t)size), 0);
    }
    closedir(folder);
}

/* Has the program set a seccomp filter of its own? `filters` is the number of filters when the command was started.
 * A higher number now means a filter of the program's own. */
static bool
filtered(VALUE settings)
{
    VALUE given = pw_setting(settings, "filters");
    if (NIL_P(given)) return false;
    char line[256];
    int now = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "Seccomp_filters: %d", &now);
    if (status) fclose(status);
    return now > atoi(StringValueCStr(given));
}

static const char *
start(VALUE settings)
{
#if PW_DISPATCH
    if (filtered(settings)) return pw_dispatch_filter;
    bool counting = pw_setting_is_on(settings, "count", false);
    pw_dispatch_settings wanted = {.of = PW_OF_PATH | PW_OF_DESCRIPTOR, .before = before, .ending = ending,
                                   .handled = pw_shortcuts_install, .disarmed = pw_shortcuts_remove};
    if (pw_setting_is_on(settings, "io", false)) wanted.of |= PW_OF_IO | PW_OF_NETWORK;
    state.stacks = pw_setting_is_on(settings, "stacks", false);
    wanted.looks = state.stacks && !counting;
    pw_tick_clock_start(&state.the_clock);
    pw_syscall_steady = state.the_clock.counter;
    memset((void *)pw_syscall_counts, 0, sizeof pw_syscall_counts);
    atomic_store(&pw_syscall_lost, 0);
    atomic_store(&pw_syscall_waits, 0);
    atomic_store(&pw_syscall_no_room_since, 0);
    state.rows_taken = 0;
    pw_syscall_ring = counting ? NULL : &pw_out.ring;
    pthread_mutex_lock(&pw_current.lock);
    memset(state.name_ids, 0, sizeof state.name_ids);
    state.cwd_size = getcwd(state.cwd, sizeof state.cwd) ? strlen(state.cwd) : 0;
    state.cwd_id = intern(state.cwd, state.cwd_size);
    seed_descriptors();
    state.active = true;
    pthread_mutex_unlock(&pw_current.lock);
    const char *refusal = pw_dispatch_start(&wanted, pw_current.generation);
    if (refusal) state.active = false;
    return refusal;
#else
    return pw_dispatch_refusal();
#endif
}

static void
stop(void)
{
    if (state.active) pw_dispatch_stop(!pw_session_generation());
}

static void
write_chunks(bool last)
{
    if (state.active) write_totals(last);
}

static void
forget(bool frees)
{
    state.active = false;
    if (frees) {
        free(state.descriptors);
        pw_buffers_free(state.columns, COLUMNS);
    }
    state.descriptors = NULL;
    state.descriptor_count = 0;
    for (int i = 0; i < COLUMNS; i++) state.columns[i] = (pw_buffer){0};
    state.rows = 0;
#if PW_DISPATCH
    pw_syscall_ring = NULL;
#endif
}

static void own_begin(void) { pw_dispatch_own(true); }
static void own_end(void) { pw_dispatch_own(false); }

/* Called in a thread that runs Ruby. Arms the thread if the thread is not armed. */
static void
here(void)
{
    if (!state.active) return;
    pw_dispatch_own(pw_own_work > 0);
    pw_dispatch_arm();
}

/* syscall_dispatch -> nil, or a String: why system calls cannot be recorded inside this process */
static VALUE
native_syscall_dispatch(VALUE self)
{
    const char *refusal = pw_dispatch_refusal();
    return refusal ? rb_str_new_cstr(refusal) : Qnil;
}

/* syscall_names(io) -> [String, ...]: names of the recorded calls */
static VALUE
native_syscall_names(VALUE self, VALUE io)
{
    VALUE names = rb_ary_new();
    int of = PW_OF_PATH | PW_OF_DESCRIPTOR | (RTEST(io) ? PW_OF_IO | PW_OF_NETWORK : 0);
    for (int i = 0; i < PW_SYSCALLS; i++) {
        if (pw_syscalls_known[i].of & of) rb_ary_push(names, rb_str_new_cstr(pw_syscalls_known[i].name));
    }
    return names;
}

/* syscall_signals -> Integer: number of recorded calls that a signal announced */
static VALUE
native_syscall_signals(VALUE self)
{
    return ULL2NUM(pw_dispatch_signals());
}

static void
init(VALUE native)
{
    pw_drain_take(PW_REC_SYSCALL, take);
    rb_define_singleton_method(native, "syscall_dispatch", native_syscall_dispatch, 0);
    rb_define_singleton_method(native, "syscall_signals", native_syscall_signals, 0);
    rb_define_singleton_method(native, "syscall_names", native_syscall_names, 1);
}

const pw_module pw_syscalls = {
    .name = "syscalls", .init = init, .start = start, .stop = stop, .forget = forget, .write = write_chunks,
            .write_rows = write_rows,
    .own_begin = own_begin, .own_end = own_end, .here = here, .sees_endings = true, .fills_ring = true};

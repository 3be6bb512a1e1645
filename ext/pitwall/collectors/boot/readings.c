#include "collectors/boot/readings.h"
#include "session/counters.h"
#include "session/modules.h"
#include "session/session.h"
#include "tools/clock.h"
#include "tools/quietly.h"
#include <fcntl.h>
#include <ruby/ruby.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_HEAPS = 16, ONE_SLOT = 40, RSS_IS_FRESH_NS = 1000000 };

static struct {
    VALUE allocated, slot_size, slots_now;
    ID stat_heap;
    int heaps;                    /* 0: this Ruby does not count objects by slot size */
    uint64_t slots[MOST_HEAPS];   /* bytes of a slot */
    int64_t rss_at;
    uint64_t rss;
} state;

/* ---- bytes ---- */

static VALUE
of_heap(VALUE args)
{
    VALUE *at = (VALUE *)args;
    return rb_funcall(rb_mGC, state.stat_heap, 2, at[0], at[1]);
}

/* False: this Ruby has no such figure. */
static bool
heap_figure(int heap, VALUE name, uint64_t *value)
{
    VALUE args[2] = {INT2FIX(heap), name}, found;
    pw_attempt(of_heap, (VALUE)args, &found);
    if (!RB_INTEGER_TYPE_P(found)) return false;
    *value = NUM2ULL(found);
    return true;
}

void
pw_readings_start(void)
{
    uint64_t unused;
    state.rss_at = 0;
    state.heaps = 0;
    if (!rb_respond_to(rb_mGC, state.stat_heap)) return;
    while (state.heaps < MOST_HEAPS && heap_figure(state.heaps, state.slot_size, &state.slots[state.heaps]) &&
           heap_figure(state.heaps, state.allocated, &unused)) state.heaps++;
}

static uint64_t
bytes_of(uint64_t objects)
{
    uint64_t sum = 0, count = 0;
    if (!state.heaps) return objects * ONE_SLOT;
    pw_own_begin();
    for (int i = 0; i < state.heaps; i++) {
        if (heap_figure(i, state.allocated, &count)) sum += count * state.slots[i];
    }
    pw_own_end();
    return sum;
}

/* ---- memory ---- */

/* These system calls are Pitwall's own. */
static ssize_t
read_file(const char *path, char *text, size_t room)
{
    ssize_t n = -1;
    pw_own_begin();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, room - 1);
        close(fd);
        if (n >= 0) text[n] = 0;
    }
    pw_own_end();
    return n;
}

uint64_t
pw_read_rss(void)
{
    char text[128];
    unsigned long size, resident;
    if (read_file("/proc/self/statm", text, sizeof text) < 0) return 0;
    if (sscanf(text, "%lu %lu", &size, &resident) != 2) return 0;
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

int64_t
pw_age_of_process(void)
{
    char text[1024], *at = NULL;
    unsigned long long ticks = 0;
    if (read_file("/proc/self/stat", text, sizeof text) > 0) at = strrchr(text, ')');
    for (int field = 3; at && field <= 22; field++) {
        at = strchr(at + 1, ' ');
        if (field == 22 && at) ticks = strtoull(at, NULL, 10);
    }
    long a_second = sysconf(_SC_CLK_TCK);
    if (!ticks || a_second <= 0) return 0;
    int64_t age = pw_clock_ns(CLOCK_BOOTTIME) - (int64_t)(ticks * (1000000000ull / (unsigned long long)a_second));
    return age > 0 ? age : 0;
}

/* ---- all ---- */

void
pw_read_figures(pw_reading *now)
{
    now->objects = rb_gc_stat(state.allocated);
    now->bytes = bytes_of(now->objects);
    now->gc = pw_counter(PW_GC_MARKING_NS) + pw_counter(PW_GC_SWEEPING_NS);
    now->cpu = pw_own_cpu_ns();
    now->wall = pw_now_ns();
    if (now->wall - state.rss_at >= RSS_IS_FRESH_NS) {
        state.rss = pw_read_rss();
        state.rss_at = now->wall;
    }
    now->rss = state.rss;
}

static long
size_of_list(const char *variable)
{
    VALUE list = rb_gv_get(variable);
    return RB_TYPE_P(list, T_ARRAY) ? RARRAY_LEN(list) : 0;
}

/* Slots of each heap: [10500, 816, …] */
static size_t
write_heaps(char *text, size_t room)
{
    size_t n = 1;
    uint64_t slots;
    text[0] = '[';
    if (!rb_respond_to(rb_mGC, state.stat_heap)) { /* 3.1 has one heap */
        uint64_t all = rb_gc_stat(ID2SYM(rb_intern("heap_available_slots")));
        return (size_t)snprintf(text, room, "[%llu]", (unsigned long long)all);
    }
    for (int i = 0; i < MOST_HEAPS && n + 24 < room && heap_figure(i, state.slots_now, &slots); i++) {
        n += (size_t)snprintf(text + n, room - n, "%s%llu", i ? "," : "", (unsigned long long)slots);
    }
    text[n++] = ']';
    text[n] = 0;
    return n;
}

size_t
pw_read_sizes(char *text, size_t room)
{
    int64_t gc = pw_counter(PW_GC_MARKING_NS) + pw_counter(PW_GC_SWEEPING_NS), at = pw_now_ns() - pw_current.origin;
    uint64_t objects = rb_gc_stat(state.allocated);
    char heaps[MOST_HEAPS * 24 + 3];
    pw_own_begin();
    write_heaps(heaps, sizeof heaps);
    pw_own_end();
    int n = snprintf(text, room,
        "{\"at_ns\":%lld,\"cpu_ns\":%lld,\"features\":%ld,\"load_path\":%ld,\"rss\":%llu,\"objects\":%llu,"
        "\"bytes\":%llu,\"gc_runs\":%llu,\"gc_ns\":%lld,\"heap_slots\":%s}",
        (long long)(at > 0 ? at : 0), (long long)pw_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        size_of_list("$LOADED_FEATURES"), size_of_list("$LOAD_PATH"), (unsigned long long)pw_read_rss(),
        (unsigned long long)objects, (unsigned long long)bytes_of(objects), (unsigned long long)rb_gc_count(),
        (long long)gc, heaps);
    return n > 0 && (size_t)n < room ? (size_t)n : 0;
}

void
pw_readings_init(void)
{
    state.stat_heap = rb_intern("stat_heap");
    state.allocated = ID2SYM(rb_intern("total_allocated_objects"));
    state.slots_now = ID2SYM(rb_intern("heap_eden_slots"));
    state.slot_size = ID2SYM(rb_intern("slot_size"));
}

#include "collectors/allocations/growth.h"
#include "output/output.h"
#include "session/session.h"
#include "tools/clock.h"
#include "collectors/allocations/sites.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    MOST_POINTS = 40,
    LEAST_GAP_NS = 2000000,  /* initial time between two points */
    WALKS_APART = 20,        /* counting births takes at most 1/20 of the time, except at the end */
    MEASURED = 64,           /* objects of a site whose bytes are measured; the others count with the mean */
    /* Births of a site are not written if its objects come from fewer intervals. Such a site does not keep growing. */
    LEAST_BINS = 3
};
enum { FULL_MARK = 1, AT_END = 2 }; /* flags of LIVE */
enum { POINT_HEADS = 5, POINT_COLUMNS = 2, BIRTH_HEADS = 2, BIRTH_COLUMNS = 4 };

typedef struct { uint32_t number, collection; } point;

/* A chunk that waits for the drain. */
typedef struct chunk {
    struct chunk *next;
    bool births;
    uint64_t head[POINT_HEADS];
    pw_buffer columns[BIRTH_COLUMNS];
} chunk;

/* Births of one site's objects, while births are counted. */
typedef struct {
    uint32_t objects[MOST_POINTS + 1], measured;
    uint64_t bytes;
} births;

static struct {
    bool on;
    point kept[MOST_POINTS];
    uint32_t kept_count, next_number;
    int64_t gap_ns, last_at;
    chunk *ready, **ready_end;
    struct {
        chunk *chunk; /* NULL: no point is pending */
        point point;
        bool full, births; /* births: still to be counted */
    } pending;
    births **born; /* by site, while births are counted */
    uint32_t collections_now;
    int64_t births_began, births_not_before;
    uint32_t last_age, last_bin; /* cache of pw_growth_born, while births are counted */
} state = {.last_age = UINT32_MAX};

bool pw_growth_on(void) { return state.on; }

void
pw_growth_start(void)
{
    state.kept_count = 0;
    state.next_number = 1;
    state.gap_ns = LEAST_GAP_NS;
    state.last_at = state.births_not_before = 0;
    state.ready = NULL;
    state.ready_end = &state.ready;
    state.on = true;
}

/* Resident memory in bytes, plus 1; 0: unknown. Opens /proc/self each time, because a forked child has its own. */
static uint64_t
resident(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    unsigned long pages;
    if (n <= 0) return 0;
    text[n] = 0;
    if (sscanf(text, "%*u %lu", &pages) != 1) return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + 1;
}

static chunk *
new_point(int flags)
{
    chunk *c = calloc(1, sizeof(chunk));
    if (!c) return NULL;
    int64_t at = pw_now_ns() - pw_current.origin;
    uint64_t head[POINT_HEADS] = {state.next_number, at > 0 ? (uint64_t)at : 0, resident(), (uint64_t)flags, 0};
    memcpy(c->head, head, sizeof head);
    return c;
}

void
pw_growth_collection(uint32_t number, bool major)
{
    if (!state.on || state.pending.chunk) return;
    int64_t now = pw_now_ns();
    /* A full mark gives more information, so points with a full mark may come twice as often. */
    if (now - state.last_at < (major ? state.gap_ns / 2 : state.gap_ns)) return;
    if (!(state.pending.chunk = new_point(major ? FULL_MARK : 0))) return;
    state.pending.point = (point){state.next_number++, number};
    state.pending.full = major;
    state.last_at = now;
}

bool pw_growth_due(void) { return state.pending.chunk != NULL; }
bool pw_growth_births_due(void) { return state.pending.births; }

void
pw_growth_living(uint32_t site, uint64_t objects)
{
    if (!objects || (site < PW_SITE_FIRST && site != PW_SITE_OTHER)) return;
    pw_buffer_int(&state.pending.chunk->columns[0], site);
    pw_buffer_int(&state.pending.chunk->columns[1], objects);
    state.pending.chunk->head[POINT_HEADS - 1]++;
}

static void
publish(chunk *c)
{
    pthread_mutex_lock(&pw_current.lock);
    *state.ready_end = c;
    state.ready_end = &c->next;
    pthread_mutex_unlock(&pw_current.lock);
}

static void
keep(point p)
{
    if (state.kept_count == MOST_POINTS) {
        for (uint32_t i = 0; i < MOST_POINTS / 2; i++) state.kept[i] = state.kept[2 * i + 1];
        state.kept_count = MOST_POINTS / 2;
        int64_t gap = (state.last_at - pw_current.origin) / (MOST_POINTS / 2);
        if (gap > state.gap_ns) state.gap_ns = gap;
    }
    state.kept[state.kept_count++] = p;
}

void
pw_growth_end_point(void)
{
    publish(state.pending.chunk);
    state.pending.chunk = NULL;
    bool at_end = state.pending.point.collection == 0;
    state.pending.births = state.pending.full && (at_end || pw_now_ns() >= state.births_not_before);
    if (!at_end) keep(state.pending.point);
}

bool
pw_growth_begin_last_point(void)
{
    if (!state.on || state.pending.chunk || !(state.pending.chunk = new_point(FULL_MARK | AT_END))) return false;
    state.pending.point = (point){state.next_number++, 0};
    state.pending.full = true;
    return true;
}

/* ---- births ---- */

bool
pw_growth_begin_births(uint32_t collections)
{
    state.births_began = pw_now_ns();
    state.collections_now = collections;
    state.last_age = UINT32_MAX;
    state.born = calloc(PW_MAX_SITES + 1, sizeof(*state.born)); /* room for all: sites are still added at the end */
    return state.born != NULL;
}

/* Index of the first kept point whose collection began after the birth; kept_count: no such point. */
static uint32_t
bin_of(uint32_t age)
{
    uint32_t birth = state.collections_now - age, low = 0, high = state.kept_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (state.kept[middle].collection > birth) high = middle;
        else low = middle + 1;
    }
    return low;
}

bool
pw_growth_born(uint32_t site, uint32_t age)
{
    births *b = state.born[site];
    if (!b && !(b = state.born[site] = calloc(1, sizeof(births)))) return false;
    /* Neighbouring objects often have the same age. */
    if (age != state.last_age) {
        state.last_bin = bin_of(age);
        state.last_age = age;
    }
    b->objects[state.last_bin]++;
    return b->measured < MEASURED;
}

void
pw_growth_bytes(uint32_t site, uint64_t bytes)
{
    state.born[site]->measured++;
    state.born[site]->bytes += bytes;
}

/* Number of a site's objects born after the first quarter of the points. 0 unless the objects come from at least half
 * of the later points. The analysis (lib/pitwall/analyse/object_growth.rb) is more exact, but runs too late for this
 * choice. */
static uint64_t
looks_growing(const births *b)
{
    uint64_t objects = 0;
    uint32_t bins = 0, first = state.kept_count / 4;
    for (uint32_t i = first; i < state.kept_count; i++) {
        objects += b->objects[i];
        bins += b->objects[i] > 0;
    }
    return bins * 2 >= state.kept_count - first ? objects : 0;
}

void
pw_growth_choose(void (*choose)(uint32_t site))
{
    enum { MOST = 20 };
    struct { uint32_t site; uint64_t objects; } chosen[MOST] = {{0}};
    for (uint32_t site = 0; site <= pw_sites_count(); site++) {
        uint64_t objects = state.born[site] ? looks_growing(state.born[site]) : 0;
        free(state.born[site]);
        for (int i = 0; i < MOST && objects; i++) {
            if (objects <= chosen[i].objects) continue;
            memmove(&chosen[i + 1], &chosen[i], (size_t)(MOST - 1 - i) * sizeof *chosen);
            chosen[i].site = site;
            chosen[i].objects = objects;
            break;
        }
    }
    free(state.born);
    state.born = NULL;
    for (int i = 0; i < MOST && chosen[i].objects; i++) choose(chosen[i].site);
}

static void
put_births(chunk *c, uint32_t site, const births *b)
{
    uint32_t bins = 0;
    for (uint32_t i = 0; i <= state.kept_count; i++) bins += b->objects[i] > 0;
    if (bins < LEAST_BINS) return;
    for (uint32_t i = 0; i <= state.kept_count; i++) {
        if (!b->objects[i]) continue;
        uint32_t number = i < state.kept_count ? state.kept[i].number : state.pending.point.number;
        uint64_t bytes = b->measured ? (uint64_t)((double)b->bytes / b->measured * b->objects[i]) : 0;
        pw_buffer_row(c->columns, (uint64_t[]){site, number, b->objects[i], bytes}, BIRTH_COLUMNS);
        c->head[1]++;
    }
}

void
pw_growth_end_births(void)
{
    chunk *c = calloc(1, sizeof(chunk));
    if (c) {
        c->births = true;
        c->head[0] = state.pending.point.number;
    }
    for (uint32_t site = 0; state.born && site <= pw_sites_count(); site++) {
        if (!state.born[site]) continue;
        if (c) put_births(c, site, state.born[site]);
        free(state.born[site]);
    }
    free(state.born);
    state.born = NULL;
    if (c) publish(c);
    state.pending.births = false;
    int64_t now = pw_now_ns();
    state.births_not_before = now + (now - state.births_began) * WALKS_APART;
}

/* ---- chunks ---- */

static void
free_chunk(chunk *c)
{
    pw_buffers_free(c->columns, BIRTH_COLUMNS);
    free(c);
}

void
pw_growth_write(void)
{
    while (state.ready) {
        chunk *c = state.ready;
        state.ready = c->next;
        if (c->births) pw_writer_table(&pw_out.writer, "BORN", BIRTH_HEADS, c->head, BIRTH_COLUMNS, c->columns);
        else pw_writer_table(&pw_out.writer, "LIVE", POINT_HEADS, c->head, POINT_COLUMNS, c->columns);
        free_chunk(c);
    }
    state.ready_end = &state.ready;
}

/* A forked child passes false: its copies of the buffers may have been growing at the fork. */
void
pw_growth_forget(bool frees)
{
    while (state.ready && frees) {
        chunk *c = state.ready;
        state.ready = c->next;
        free_chunk(c);
    }
    if (state.pending.chunk && frees) free_chunk(state.pending.chunk);
    state.ready = state.pending.chunk = NULL;
    state.pending.births = false;
    state.ready_end = &state.ready;
    state.on = false;
}

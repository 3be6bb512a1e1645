#include "collectors/boot/loads.h"
#include "collectors/boot/load_callers.h"
#include "collectors/boot/readings.h"
#include "output/drain.h"
#include "output/output.h"
#include "output/record_kinds.h"
#include "sampling/registry.h"
#include "sampling/works.h"
#include "session/modules.h"
#include "tools/clock.h"
#include "vm/raw_hook.h"
#include "vm/stack_walk.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#undef snprintf /* Ruby's snprintf may allocate objects, and the drain has no GVL */

enum { ROWS_A_CHUNK = 1 << 12, PAUSE_NS = 200000, PAUSES = 5000, LONGEST = 4096, JSON_ROOM = 1024, CACHE_ROOM = 48 };
enum { TEXTS = 3 }; /* of a row: name, path, from */
enum { THREAD, LOAD, PARENT, KIND, NAME, PATH, FROM, LINE, AT, WALL, CPU, COMPILE, GC, OBJECTS, BYTES, RSS_BEFORE,
       RSS_AFTER, ENDING, REPEATS, REPEAT_NS, BEGUN, CACHE, COLUMNS };

static const char *const kinds[PW_LOADS] = {
#define PW_LOAD_NAME(constant, name) name,
    PW_LOAD_KINDS(PW_LOAD_NAME)
#undef PW_LOAD_NAME
};

typedef struct {
    pw_record_header header;
    uint32_t sizes[TEXTS]; /* bytes of name, path and from, which follow one another in `text` */
    char cache[CACHE_ROOM];
    uint64_t values[COLUMNS]; /* those of strings and of the kind are set by the drain */
    int kind;
    char text[];
} load_row;

/* A load that has not ended. */
typedef struct {
    uint64_t id, parent;
    VALUE thread, name, path;   /* path: of the compiled file; Qnil: none so far */
    const void *fiber;          /* its execution context */
    uint32_t thread_id;         /* in the recording; 0: not known when it began */
    pid_t tid;
    VALUE from;                 /* the Ruby file that asked for it, or Qnil */
    VALUE codes;                /* of its file, where uses are recorded; else Qnil */
    int kind, line;
    uint32_t begun;
    int64_t compiled;           /* when its file was compiled; 0: not so far */
    uint64_t repeats, repeat_ns;
    pw_reading at, until;       /* until: when the boot ended meanwhile */
    bool outlasts;              /* the boot: its figures end with that */
    char cache[CACHE_ROOM];     /* what a cache said of its file: "bootsnap hit"; "": nothing */
} open_load;

static struct {
    _Atomic bool active;
    uint32_t generation;
    uint64_t next_id;
    const void *root;           /* the fiber that started the recording */
    open_load *open;            /* those of all threads, in the order in which they began. needs GVL */
    uint32_t opened, room;
    bool hooked;
    _Atomic uint64_t lost, repeats, repeat_ns; /* repeats: outside of all loads */
    int64_t age_ns, own_ns;     /* since the process began; the part of it that Pitwall itself needed */
    char start[JSON_ROOM], booted[JSON_ROOM], end[JSON_ROOM];
    pw_buffer columns[COLUMNS];
    uint32_t rows, kind_ids[PW_LOADS];
} state;

void (*pw_loads_loaded)(VALUE, VALUE);
void (*pw_loads_repeated)(uint64_t, int, VALUE);

bool
pw_loads_wanted(void)
{
    return atomic_load_explicit(&state.active, memory_order_relaxed) && !pw_own_work && pw_in_main_ractor();
}

/* ---- rows ---- */

uint32_t
pw_loads_text_size(VALUE text)
{
    if (!RB_TYPE_P(text, T_STRING)) return 0;
    long size = RSTRING_LEN(text);
    return size > LONGEST ? LONGEST : (uint32_t)size;
}

void *
pw_loads_reserve(uint32_t bytes)
{
    for (int i = 0; i < PAUSES; i++) {
        pw_record_header *row = pw_ring_reserve(&pw_out.ring, bytes);
        if (row) return row;
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    return NULL;
}

static uint64_t less(int64_t to, int64_t from) { return to > from ? (uint64_t)(to - from) : 0; }

static void
put_row(const open_load *load, int ending, const pw_reading *end)
{
    VALUE texts[TEXTS] = {load->name, load->path, load->from};
    uint32_t sizes[TEXTS], bytes = sizeof(load_row);
    for (int i = 0; i < TEXTS; i++) bytes += sizes[i] = pw_loads_text_size(texts[i]);
    load_row *row = pw_loads_reserve(bytes);
    if (!row) {
        atomic_fetch_add(&state.lost, 1);
        return;
    }
    row->header.kind = PW_REC_LOAD;
    row->kind = load->kind;
    uint64_t values[COLUMNS] = {
        [THREAD] = load->thread_id, [LOAD] = load->id, [PARENT] = load->parent, [LINE] = (uint64_t)load->line,
        [AT] = less(load->at.wall, pw_current.origin), [WALL] = less(end->wall, load->at.wall),
        [CPU] = less(end->cpu, load->at.cpu), [COMPILE] = load->compiled ? less(load->compiled, load->at.wall) : 0,
        [GC] = less(end->gc, load->at.gc), [OBJECTS] = less((int64_t)end->objects, (int64_t)load->at.objects),
        [BYTES] = less((int64_t)end->bytes, (int64_t)load->at.bytes), [RSS_BEFORE] = load->at.rss,
        [RSS_AFTER] = end->rss, [ENDING] = (uint64_t)ending, [REPEATS] = load->repeats,
        [REPEAT_NS] = load->repeat_ns, [BEGUN] = load->begun};
    memcpy(row->values, values, sizeof values);
    memcpy(row->sizes, sizes, sizeof sizes);
    memcpy(row->cache, load->cache, sizeof row->cache);
    char *to = row->text;
    for (int i = 0; i < TEXTS; to += sizes[i++]) if (sizes[i]) memcpy(to, RSTRING_PTR(texts[i]), sizes[i]);
    pw_ring_commit(&row->header, bytes);
}

/* ---- beginnings and ends ---- */

/* A load belongs to the fiber that runs it, because another load may begin while that fiber waits. What a fiber loads
 * first is within the root fiber's load, which waits for it. */
static open_load *
innermost(VALUE thread, const void *fiber)
{
    open_load *of_root = NULL;
    for (uint32_t i = state.opened; i-- > 0;) {
        open_load *load = &state.open[i];
        if (load->thread != thread) continue;
        if (load->fiber == fiber) return load;
        if (load->fiber == state.root && !of_root) of_root = load;
    }
    return of_root;
}

static open_load *
with_id(uint64_t id)
{
    for (uint32_t i = state.opened; id && i-- > 0;) if (state.open[i].id == id) return &state.open[i];
    return NULL;
}

pw_load
pw_load_begin(int kind, VALUE name)
{
    pw_load none = {0};
    if (state.opened == state.room) {
        uint32_t room = state.room ? state.room * 2 : 64;
        open_load *larger = pw_noted(realloc(state.open, room * sizeof *larger));
        if (!larger) return none;
        state.open = larger;
        state.room = room;
    }
    VALUE thread = rb_thread_current();
    const void *fiber = pw_walk_context_of(thread);
    const pw_thread *t = pw_registered_self();
    const open_load *parent = innermost(thread, fiber);
    open_load *load = &state.open[state.opened];
    *load = (open_load){.id = state.next_id++, .parent = parent ? parent->id : 0, .thread = thread, .name = name,
                        .fiber = fiber, .thread_id = t ? t->id : 0, .tid = pw_gettid(),
                        .path = Qnil, .from = Qnil, .codes = Qnil, .kind = kind,
                        .begun = atomic_load_explicit(&pw_works.begun, memory_order_relaxed)};
    state.opened++;
    pw_load begun = {load->id, state.generation};
    pw_reading now; /* reading may run Ruby code, which moves the list */
    pw_read_figures(&now);
    if ((load = with_id(begun.id))) load->at = now;
    return begun;
}

/* NULL: it began in another recording, or its parent process. */
static open_load *
find(pw_load load)
{
    if (!load.id || load.generation != state.generation || !atomic_load(&state.active)) return NULL;
    return with_id(load.id);
}

static void
take_off(open_load *load)
{
    memmove(load, load + 1, (size_t)(state.open + state.opened - load - 1) * sizeof *load);
    state.opened--;
}

void
pw_load_is_of(pw_load load, VALUE path, int line)
{
    open_load *found = find(load);
    if (!found || !RB_TYPE_P(path, T_STRING)) return;
    found->from = path;
    found->line = line;
}

static bool
is_extension(VALUE path)
{
    static const char ending[] = ".so";
    const long length = sizeof ending - 1;
    if (!RB_TYPE_P(path, T_STRING) || RSTRING_LEN(path) < length) return false;
    return memcmp(RSTRING_PTR(path) + RSTRING_LEN(path) - length, ending, (size_t)length) == 0;
}

void
pw_load_end(pw_load load, int ending, VALUE path)
{
    open_load *found = find(load);
    if (!found) return;
    open_load ended = *found;
    take_off(found);
    pw_thread *t = pw_registered_self();
    if (!t) {
        atomic_fetch_add(&state.lost, 1);
        return;
    }
    if (!NIL_P(path)) ended.path = path;
    if (is_extension(ended.path)) ended.compiled = 0, ended.cache[0] = 0; /* of Ruby code that the extension loads */
    if (ended.kind == PW_LOAD_REQUIRE && pw_load_is_autoload()) ended.kind = PW_LOAD_AUTOLOAD;
    if (NIL_P(ended.from)) ended.from = pw_load_asked_by(&ended.line);
    ended.thread_id = t->id;
    pw_reading now;
    pw_read_figures(&now);
    if (ended.outlasts) put_row(&ended, PW_NOT_ENDED, &ended.until);
    else put_row(&ended, ending, &now);
    if (!NIL_P(ended.codes) && ending == PW_LOADED) pw_loads_loaded(ended.path, ended.codes);
}

/* Figures of loads that outlast the boot, or the recording, end here. `now.cpu` is of the calling thread. */
static void
cut_off(open_load *load, const pw_reading *now)
{
    if (load->outlasts) return;
    load->until = *now;
    if (load->tid != pw_gettid()) load->until.cpu = pw_clock_ns(pw_cpu_clock_of(load->tid));
    load->outlasts = true;
}

/* After the boot it is not counted. */
void
pw_load_was_done(pw_load load)
{
    open_load *found = find(load);
    if (!found) return;
    uint64_t ns = less(pw_now_ns(), found->at.wall);
    uint64_t around = found->parent;
    int kind = found->kind;
    VALUE name = found->name;
    take_off(found);
    open_load *parent = with_id(around);
    if (parent ? parent->outlasts : state.booted[0]) return;
    pw_loads_repeated(around, kind, name);
    if (parent) {
        parent->repeats++;
        parent->repeat_ns += ns;
        return;
    }
    atomic_fetch_add(&state.repeats, 1);
    atomic_fetch_add(&state.repeat_ns, ns);
}

/* A cache answers before the file's code runs. An answer while it runs is about another file. */
void
pw_load_came_from(const char *cache, const char *outcome, bool of_code, bool of_data, bool later)
{
    if (!pw_loads_wanted() || !state.opened) return;
    VALUE thread = rb_thread_current();
    open_load *load = innermost(thread, pw_walk_context_of(thread));
    if (!load || load->outlasts || later != (load->cache[0] != 0)) return;
    bool is_code = of_code && load->kind <= PW_LOAD_AUTOLOAD && (later || !load->compiled);
    bool is_data = of_data && pw_load_is_data(load->kind);
    if (is_code || is_data) snprintf(load->cache, sizeof load->cache, "%s %s", cache, outcome);
}

/* A file was compiled, or its compiled code was read, and is about to run. Evaluated code has an Array. */
static void
on_compiled(VALUE unused, const pw_trace_arg *arg)
{
    if (!pw_loads_wanted() || !state.opened || !arg->data || !RB_TYPE_P(arg->data, T_IMEMO)) return;
    VALUE thread = rb_thread_current();
    open_load *load = innermost(thread, pw_walk_context_of(thread));
    if (!load || load->compiled || load->outlasts || load->kind > PW_LOAD_AUTOLOAD) return;
    load->compiled = pw_now_ns();
    VALUE path = rb_profile_frame_path(arg->data);
    if (RB_TYPE_P(path, T_STRING)) load->path = path;
}

/* The first code that runs within a load is the file's own. */
VALUE
pw_loads_codes_of(VALUE path, bool evaluated)
{
    VALUE thread = rb_thread_current(), codes = rb_ary_new();
    open_load *load = innermost(thread, pw_walk_context_of(thread));
    if (!evaluated && load && load->kind <= PW_LOAD_AUTOLOAD && NIL_P(load->codes)) {
        load->path = path;
        return load->codes = codes;
    }
    for (uint32_t i = evaluated ? state.opened : 0; i-- > 0;) {
        if (!NIL_P(state.open[i].codes) && RTEST(rb_str_equal(state.open[i].path, path))) return state.open[i].codes;
    }
    return Qnil;
}

/* ---- in the drain ---- */

uint32_t
pw_loads_kind_id(int kind)
{
    if (!state.kind_ids[kind]) {
        state.kind_ids[kind] = pw_intern_string(&pw_out.tables, kinds[kind], strlen(kinds[kind]));
    }
    return state.kind_ids[kind];
}

/* holds session lock */
static bool
take(const pw_record_header *record)
{
    const load_row *row = (const load_row *)record;
    uint64_t values[COLUMNS];
    memcpy(values, row->values, sizeof values);
    values[KIND] = pw_loads_kind_id(row->kind);
    const char *text = row->text;
    for (int i = 0; i < TEXTS; text += row->sizes[i++]) {
        values[NAME + i] = pw_intern_string(&pw_out.tables, text, row->sizes[i]);
    }
    values[CACHE] = pw_intern_string(&pw_out.tables, row->cache, strlen(row->cache));
    pw_buffer_row(state.columns, values, COLUMNS);
    return ++state.rows >= ROWS_A_CHUNK;
}

void
pw_loads_write_rows(void)
{
    if (!state.rows) return;
    pw_writer_table(&pw_out.writer, "LOAD", 1, (uint64_t[]){state.rows}, COLUMNS, state.columns);
    state.rows = 0;
}

void
pw_loads_write_sums(bool used)
{
    char json[3 * JSON_ROOM + 256];
    if (!state.start[0]) return;
    int n = snprintf(json, sizeof json,
        "{\"age_ns\":%lld,\"own_ns\":%lld,\"start\":%s,\"booted\":%s,\"end\":%s,\"repeats\":%llu,"
        "\"repeat_ns\":%llu,\"lost\":%llu,\"used\":%s}",
        (long long)state.age_ns, (long long)state.own_ns, state.start, state.booted[0] ? state.booted : "null",
        state.end[0] ? state.end : "null", (unsigned long long)atomic_load(&state.repeats),
        (unsigned long long)atomic_load(&state.repeat_ns), (unsigned long long)atomic_load(&state.lost),
        used ? "true" : "false");
    if (n > 0 && (size_t)n < sizeof json) pw_writer_chunk(&pw_out.writer, "BOOT", json, (size_t)n);
}

/* ---- start and stop ---- */

/* Assembled apart, because the drain may read at the same time. The first byte is written last. */
static void
set_sizes(char *place)
{
    char text[JSON_ROOM] = "";
    if (!pw_read_sizes(text, sizeof text)) return;
    memcpy(place + 1, text + 1, sizeof text - 1);
    __atomic_store_n(place, text[0], __ATOMIC_RELEASE);
}

void
pw_loads_booted(void)
{
    if (!pw_loads_wanted() || state.booted[0]) return;
    pw_reading now;
    pw_read_figures(&now);
    for (uint32_t i = 0; i < state.opened; i++) cut_off(&state.open[i], &now);
    set_sizes(state.booted);
}

void
pw_loads_init(void)
{
    pw_drain_take(PW_REC_LOAD, take);
    pw_readings_init();
}

void
pw_loads_start(int64_t began)
{
    state.generation++;
    state.next_id = 1;
    state.opened = 0;
    atomic_store(&state.lost, 0);
    atomic_store(&state.repeats, 0);
    atomic_store(&state.repeat_ns, 0);
    state.booted[0] = state.end[0] = 0;
    pw_readings_start();
    pw_load_callers_start();
    state.root = pw_walk_context_of(rb_thread_current());
    state.age_ns = pw_age_of_process();
    state.own_ns = began ? (int64_t)less(pw_now_ns(), began) : 0;
    set_sizes(state.start);
    pw_add_raw_hook(on_compiled, RUBY_EVENT_SCRIPT_COMPILED);
    state.hooked = true;
    atomic_store(&state.active, true);
}

/* The callers of these loads are not known here. */
void
pw_loads_stop(void)
{
    if (!atomic_load(&state.active)) return;
    pw_reading now;
    pw_read_figures(&now);
    while (state.opened) {
        open_load load = state.open[--state.opened];
        cut_off(&load, &now);
        if (load.thread_id) put_row(&load, PW_NOT_ENDED, &load.until);
        else atomic_fetch_add(&state.lost, 1);
    }
    set_sizes(state.end);
    atomic_store(&state.active, false);
    if (state.hooked) pw_remove_raw_hook(on_compiled);
    state.hooked = false;
}

/* Loads that began before the fork belong to the parent's recording. */
void
pw_loads_in_child(void)
{
    atomic_store(&state.active, false);
    if (state.hooked) pw_remove_raw_hook(on_compiled);
    state.hooked = false;
    state.opened = 0;
}

/* GC runs with the GVL, so the list does not change meanwhile. */
void
pw_loads_mark(void)
{
    for (uint32_t i = 0; i < state.opened; i++) {
        rb_gc_mark(state.open[i].thread);
        rb_gc_mark(state.open[i].name);
        rb_gc_mark(state.open[i].path);
        rb_gc_mark(state.open[i].from);
        rb_gc_mark(state.open[i].codes);
    }
}

void
pw_loads_forget(bool frees)
{
    atomic_store(&state.active, false);
    if (frees) pw_buffers_free(state.columns, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) state.columns[i] = (pw_buffer){0};
    state.rows = state.opened = 0;
    state.start[0] = 0;
    memset(state.kind_ids, 0, sizeof state.kind_ids);
}

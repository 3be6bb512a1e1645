#include "sampling/queries.h"
#include "output/drain.h"
#include "output/output.h"
#include "sampling/capture.h"
#include "sampling/query_sums.h"
#include "sampling/registry.h"
#include "sampling/sql_digest.h"
#include "tools/fnv.h"
#include "vm/stack_walk.h"
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ASKED, CACHED, SCHEMA };  /* kinds of queries, as in the recording */
enum { MOST = 16384 };           /* most queries that are told apart */

/* ---- numbers: read with the GVL held ---- */

typedef struct { uint64_t place, digest; uint32_t id; } number;

static struct {
    number *slots;
    uint32_t size, last, pending; /* size: a power of two; pending: rows not yet written */
    pw_buffer ids, nodes, digests, kinds;
} queries;

static struct {
    uint32_t generation; /* of the numbers: work may last from one recording to another */
    ID work_variable;
    VALUE fiber_class, m_queries, c_work, paths;
    VALUE sym_sql, sym_name, sym_cached;
    bool inherits;
} state;

/* ---- the line that made the query ---- */

static VALUE ask_application(VALUE path) { return rb_funcall(state.m_queries, rb_intern("application?"), 1, path); }

/* Returns a number for a path; 0: the path is not code of the application. A path is known by its String object,
 * which all code of a file shares. */
static uint64_t
number_of_path(VALUE path)
{
    enum { MOST_PATHS = 20000 };
    VALUE known = rb_hash_lookup2(state.paths, path, Qundef);
    if (known != Qundef) return (uint64_t)FIX2LONG(known);
    int error = 0;
    VALUE saved = rb_errinfo(), mine = rb_protect(ask_application, path, &error);
    if (error) {
        rb_set_errinfo(saved);
        pw_count(PW_QUERIES_FAILED, 1);
    }
    uint64_t hash = 0;
    if (!error && RTEST(mine)) {
        hash = pw_fnv(PW_FNV_START, RSTRING_PTR(path), (size_t)RSTRING_LEN(path));
        hash = (hash >> 4) | 1; /* so that the hash is a Fixnum */
    }
    if (RHASH_SIZE(state.paths) >= MOST_PATHS) rb_hash_clear(state.paths);
    rb_hash_aset(state.paths, path, LONG2FIX((long)hash));
    return hash;
}

typedef struct { VALUE frame, owner; uint32_t line; uint64_t path; } place;

static uint64_t
number_of_frame(VALUE frame)
{
    VALUE path = rb_profile_frame_absolute_path(frame);
    if (!RB_TYPE_P(path, T_STRING)) path = rb_profile_frame_path(frame);
    return RB_TYPE_P(path, T_STRING) ? number_of_path(path) : 0;
}

static bool wanted(VALUE iseq, void *path) { return (*(uint64_t *)path = number_of_frame(iseq)) != 0; }

/* Finds the innermost line of the application among the frames next to the query. Path 0: there is none. */
static place
find_place(void)
{
    enum { NEAR = 48, LOOK = 256 };
    place found = {0};
    if (pw_walk_own()) {
        pw_frame_seen seen = {0};
        if (!pw_walk_find(wanted, &found.path, LOOK, &seen)) return (place){0};
        return (place){seen.frame, seen.owner, seen.line > 0 ? (uint32_t)seen.line : 0, found.path};
    }
    VALUE frames[LOOK];
    int lines[LOOK], n = 0;
    for (int most = NEAR, i = 0; most <= LOOK; most = most < LOOK ? LOOK : LOOK + 1) {
        for (n = rb_profile_frames(0, most, frames, lines); i < n; i++) {
            if (lines[i] > 0 && (found.path = number_of_frame(frames[i]))) {
                return (place){frames[i], 0, (uint32_t)lines[i], found.path};
            }
        }
        if (n < most) break;
    }
    return (place){0};
}

/* ---- numbers ---- */

static number *
slot_of(number *slots, uint32_t size, uint64_t at, uint64_t digest)
{
    uint32_t mask = size - 1, i = (uint32_t)pw_query_hash(at, digest) & mask;
    while (slots[i].id && (slots[i].place != at || slots[i].digest != digest)) i = (i + 1) & mask;
    return &slots[i];
}

static bool
make_room(void)
{
    if (queries.size && queries.last * 2 < queries.size) return true;
    uint32_t size = queries.size ? queries.size * 2 : 256;
    number *larger = pw_noted(calloc(size, sizeof(number)));
    if (!larger) return false;
    for (uint32_t i = 0; i < queries.size; i++) {
        if (queries.slots[i].id) {
            *slot_of(larger, size, queries.slots[i].place, queries.slots[i].digest) = queries.slots[i];
        }
    }
    free(queries.slots);
    queries.slots = larger;
    queries.size = size;
    return true;
}

/* Returns the number of a query in this recording; 0: too many queries, no memory, or the recording has stopped. */
static uint32_t
number_of(VALUE sql, int kind)
{
    place where = find_place(); /* may run Ruby code, which may change the text */
    if (!pw_current.generation) return 0; /* the recording was stopped meanwhile; from here on nothing else runs */
    uint64_t digest = pw_sql_digest(RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql)),
                      at = pw_query_hash(where.path, (uint64_t)where.line << 2 | (uint64_t)kind);
    if (!make_room()) return 0;
    number *slot = slot_of(queries.slots, queries.size, at, digest);
    if (slot->id) return slot->id;
    if (queries.last >= MOST) {
        pw_count(PW_QUERIES_LEFT_OUT, 1);
        return 0;
    }
    *slot = (number){at, digest, ++queries.last};
    pthread_mutex_lock(&pw_current.lock);
    uint32_t node = where.frame ? pw_intern_node(&pw_out.tables, 0, where.frame, where.owner, where.line) : 0;
    pw_buffer_int(&queries.ids, slot->id);
    pw_buffer_int(&queries.nodes, node);
    pw_buffer_int(&queries.digests, digest);
    pw_buffer_int(&queries.kinds, (uint64_t)kind);
    queries.pending++;
    pthread_mutex_unlock(&pw_current.lock);
    return slot->id;
}

/* ---- a piece of work ---- */

typedef struct {
    uint32_t generation, count, room, last; /* last: the part that was added to last */
    bool ended;
    pw_query_part *parts;
} work;

static void
work_free(void *w)
{
    free(((work *)w)->parts);
    xfree(w);
}

static size_t work_size(const void *w) { return sizeof(work) + ((const work *)w)->room * sizeof(pw_query_part); }

static const rb_data_type_t work_type = {"Pitwall::Collect::Queries::Work", {NULL, work_free, work_size}, NULL, NULL,
                                         RUBY_TYPED_FREE_IMMEDIATELY};

/* query_work() -> an object in which a piece of work that begins adds up its queries */
static VALUE
native_query_work(VALUE self)
{
    work *w;
    return TypedData_Make_Struct(state.c_work, work, &work_type, w);
}

static pw_query_part *
part_of(work *w, uint32_t query)
{
    if (w->generation != state.generation) {
        w->generation = state.generation;
        w->count = 0;
    }
    for (uint32_t i = 0; i < w->count; i++) { /* queries mostly follow each other in the same order as before */
        uint32_t at = (w->last + i) % w->count;
        if (w->parts[at].query != query) continue;
        w->last = at;
        return &w->parts[at];
    }
    if (w->count == PW_QUERY_PARTS) return &w->parts[w->count - 1];
    if (w->count == w->room) {
        uint32_t room = w->room ? w->room * 2 : 8;
        pw_query_part *larger = realloc(w->parts, room * sizeof(*larger));
        if (!larger) return NULL;
        w->parts = larger;
        w->room = room;
    }
    w->last = w->count++;
    if (w->count == PW_QUERY_PARTS) query = 0; /* 0 stands for all other queries */
    w->parts[w->last] = (pw_query_part){.query = query};
    return &w->parts[w->last];
}

static work *
work_in(VALUE object)
{
    if (!rb_typeddata_is_kind_of(object, &work_type)) return NULL;
    work *w = RTYPEDDATA_DATA(object);
    return w->ended ? NULL : w;
}

/* Returns the running fiber's work: its own, or the work in which the fiber was created, if that was in this thread. */
static work *
current_work(void)
{
    VALUE thread = rb_thread_current(), own = rb_thread_local_aref(thread, state.work_variable);
    if (!NIL_P(own)) return work_in(own);
    if (!state.inherits) return NULL;
    VALUE pair = rb_funcall(state.fiber_class, rb_intern("[]"), 1, ID2SYM(state.work_variable));
    if (!RB_TYPE_P(pair, T_ARRAY) || RARRAY_LEN(pair) != 2 || rb_ary_entry(pair, 0) != thread) return NULL;
    return work_in(rb_ary_entry(pair, 1));
}

const pw_query_part *
pw_queries_of(VALUE object, uint32_t *count)
{
    *count = 0;
    work *w = work_in(object);
    if (!w) return NULL;
    w->ended = true;
    if (w->generation != state.generation) return NULL;
    *count = w->count;
    return w->parts;
}

/* ---- a query ---- */

/* Records a query that belongs to no work. If the ring is full, the thread waits until the drain releases the
 * session's lock. Then the thread adds the query itself. A program without requests may make a great many queries. */
static void
tell_alone(const pw_query_part *part)
{
    pw_thread *t = pw_registered_self();
    if (!t || !pw_enter_handler()) return;
    bool told = pw_put_query(t, part);
    uint32_t label = atomic_load_explicit(&t->own.label, memory_order_relaxed);
    pw_leave_handler();
    if (told || !pw_current.generation) return;
    pthread_mutex_lock(&pw_current.lock);
    pw_query_sums_add(label, part, 1, false);
    pthread_mutex_unlock(&pw_current.lock);
}

static void
add(VALUE sql, int64_t ns, int kind)
{
    if (!RB_TYPE_P(sql, T_STRING)) return;
    pw_own_begin();
    work *w = current_work();
    uint32_t query = number_of(sql, kind);
    if (ns < 0) ns = 0;
    pw_query_part *part = w && !w->ended ? part_of(w, query) : NULL;
    if (part) {
        part->count++;
        part->ns += (uint64_t)ns;
    }
    pw_own_end();
    if (part) return;
    tell_alone(&(pw_query_part){query, 1, (uint64_t)ns});
    RB_GC_GUARD(sql);
}

static bool
starts_with(VALUE string, const char *word)
{
    size_t n = strlen(word);
    return RB_TYPE_P(string, T_STRING) && (size_t)RSTRING_LEN(string) >= n &&
           strncasecmp(RSTRING_PTR(string), word, n) == 0;
}

/* The tables of this file belong to the main Ractor. The main Ractor's GVL guards them. */
static bool counts_here(void) { return pw_session_generation() && pw_in_main_ractor(); }

static int64_t ns_between(double start, double finish) { return (int64_t)((finish - start) * 1e9); }

/* call(name, start, finish, id, payload): a subscriber of ActiveSupport::Notifications. Calls nothing that raises,
 * because the program's query would then raise. */
static VALUE
event_call(VALUE self, VALUE name, VALUE start, VALUE finish, VALUE id, VALUE payload)
{
    if (!counts_here() || !RB_TYPE_P(payload, T_HASH)) return Qnil;
    VALUE title = rb_hash_lookup2(payload, state.sym_name, Qnil), sql = rb_hash_lookup2(payload, state.sym_sql, Qnil);
    bool cached = RTEST(rb_hash_lookup2(payload, state.sym_cached, Qnil)) || starts_with(title, "CACHE");
    bool schema = starts_with(title, "SCHEMA") || starts_with(sql, "PRAGMA");
    int64_t ns = RB_FLOAT_TYPE_P(start) &&
                 RB_FLOAT_TYPE_P(finish) ? ns_between(RFLOAT_VALUE(start), RFLOAT_VALUE(finish)) : 0;
    add(sql, ns, cached ? CACHED : schema ? SCHEMA : ASKED);
    return Qnil;
}

typedef struct { int argc; const VALUE *argv; int64_t began; } call;

static VALUE call_super(VALUE data) { return rb_call_super(((call *)data)->argc, ((call *)data)->argv); }

static VALUE
call_end(VALUE data)
{
    call *c = (call *)data;
    if (c->argc > 0 && counts_here()) {
        add(c->argv[0], pw_now_ns() - c->began, starts_with(c->argv[0], "PRAGMA") ? SCHEMA : ASKED);
    }
    return Qnil;
}

/* log_connection_yield of Sequel::Database. Each query goes through this method, with the query's text as first
 * argument. The method is written in C, so that no Ruby code of Pitwall is on the stack while the query runs. */
static VALUE
log_connection_yield(int argc, VALUE *argv, VALUE self)
{
    if (!counts_here()) return rb_call_super(argc, argv);
    call c = {argc, argv, pw_now_ns()};
    return rb_ensure(call_super, (VALUE)&c, call_end, (VALUE)&c);
}

/* Takes a QUERY record. */
static bool
take_query(const pw_record_header *record)
{
    const pw_sample *s = (const pw_sample *)record;
    pw_query_sums_add(s->label, (const pw_query_part *)s->frames, record->captures, false);
    return false;
}

/* ---- chunks ---- */

void
pw_queries_write(void)
{
    if (queries.pending) {
        pw_buffer columns[4] = {queries.ids, queries.nodes, queries.digests, queries.kinds};
        pw_writer_table(&pw_out.writer, "QURY", 1, (uint64_t[]){queries.pending}, 4, columns);
        queries.ids = columns[0], queries.nodes = columns[1], queries.digests = columns[2], queries.kinds = columns[3];
        queries.pending = 0;
    }
    pw_query_sums_write();
}

/* ---- a recording's beginning and end ---- */

static void prepare(void) { state.generation++; }

static void
forget(bool frees)
{
    if (frees) {
        free(queries.slots);
        pw_buffer *buffers[] = {&queries.ids, &queries.nodes, &queries.digests, &queries.kinds};
        for (int i = 0; i < 4; i++) pw_buffer_free(buffers[i]);
    }
    memset(&queries, 0, sizeof queries);
    pw_query_sums_forget(frees);
}

/* queries_failed(): counts a failure of Pitwall's code. The program's query went on. */
static VALUE
native_queries_failed(VALUE self)
{
    pw_count(PW_QUERIES_FAILED, 1);
    return Qnil;
}

/* query_event(object): makes the object a subscriber. */
static VALUE
native_query_event(VALUE self, VALUE object)
{
    rb_ext_ractor_safe(true); /* within a require, Ruby treats a new method as unsafe */
    rb_define_singleton_method(object, "call", event_call, 5);
    return object;
}

/* query_log(module): defines Sequel's log_connection_yield in the module. */
static VALUE
native_query_log(VALUE self, VALUE module)
{
    Check_Type(module, T_MODULE);
    rb_ext_ractor_safe(true);
    rb_define_method(module, "log_connection_yield", log_connection_yield, -1);
    return module;
}

/* sql_digest(text) -> Integer */
static VALUE
native_sql_digest(VALUE self, VALUE sql)
{
    Check_Type(sql, T_STRING);
    return ULL2NUM(pw_sql_digest(RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql)));
}

static void
init(VALUE native)
{
    pw_drain_take(PW_REC_QUERY, take_query);
    state.work_variable = rb_intern("__pitwall_work");
    state.sym_sql = ID2SYM(rb_intern("sql"));
    state.sym_name = ID2SYM(rb_intern("name"));
    state.sym_cached = ID2SYM(rb_intern("cached"));
    state.fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
    rb_gc_register_mark_object(state.fiber_class);
    state.inherits = rb_respond_to(state.fiber_class, rb_intern("[]"));
    state.paths = rb_funcall(rb_hash_new(), rb_intern("compare_by_identity"), 0);
    rb_gc_register_mark_object(state.paths);
    state.m_queries = rb_define_module_under(rb_define_module_under(rb_define_module("Pitwall"), "Collect"), "Queries");
    rb_gc_register_mark_object(state.m_queries);
    state.c_work = rb_define_class_under(state.m_queries, "Work", rb_cObject);
    rb_gc_register_mark_object(state.c_work);
    rb_undef_alloc_func(state.c_work);
    rb_define_singleton_method(native, "query_work", native_query_work, 0);
    rb_define_singleton_method(native, "query_event", native_query_event, 1);
    rb_define_singleton_method(native, "query_log", native_query_log, 1);
    rb_define_singleton_method(native, "queries_failed", native_queries_failed, 0);
    rb_define_singleton_method(native, "sql_digest", native_sql_digest, 1);
}

const pw_module pw_queries = {.init = init, .prepare = prepare, .forget = forget};

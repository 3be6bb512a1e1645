#include "collectors/allocations/holders.h"
#include "output/output.h"
#include "session/change.h"
#include "session/session.h"
#include "tools/clock.h"
#include "vm/vm_compat.h"
#include <string.h>

enum { MOST_OBJECTS = 4000000, MOST_ROOTS = 32, DEEPEST = 64, LOOKS_BETWEEN_CLOCKS = 1024 };
#define MOST_NS 5000000000
#define ROOT 0x80000000u /* flag in a parent: the other bits are the number of a root's category */
enum { CUT_BY_TIME = 1, CUT_BY_OBJECTS = 2, OTHER_RACTORS = 4, NOT_HERE = 8 }; /* flags of HOLD */
enum { HEADS = 4, COLUMNS = 4 };

static struct {
    bool wanted;
    struct { VALUE object; uint32_t site, seen_at; } held[PW_HELD];
    uint32_t held_count;
    uint32_t sites[PW_HELD / PW_HELD_OF_SITE], seen[PW_HELD / PW_HELD_OF_SITE], site_count;
    uint64_t flags, looked_at, took_ns, rows;
    pw_buffer columns[COLUMNS];
    bool found; /* there is a result to write */
} state;

bool pw_holders_wanted(void) { return state.wanted; }

void
pw_holders_start(bool is)
{
    state.wanted = is;
    state.held_count = state.site_count = 0;
    state.flags = state.looked_at = state.took_ns = state.rows = 0;
    state.found = false;
}

void
pw_holders_choose(uint32_t site)
{
    if (state.site_count == PW_HELD / PW_HELD_OF_SITE) return;
    state.seen[state.site_count] = 0;
    state.sites[state.site_count++] = site;
}

/* Keeps the first objects of a site. After that, each object whose index is a power of 2 replaces a kept object. So
 * the kept objects were not all created at the same time. */
void
pw_holders_see(uint32_t site, VALUE object)
{
    for (uint32_t i = 0; i < state.site_count; i++) {
        if (state.sites[i] != site) continue;
        uint32_t n = state.seen[i]++;
        if (n >= PW_HELD_OF_SITE && (n & (n - 1))) return;
        state.held[i * PW_HELD_OF_SITE + n % PW_HELD_OF_SITE].object = object;
        state.held[i * PW_HELD_OF_SITE + n % PW_HELD_OF_SITE].site = site;
    }
}

#ifdef HAVE_RB_OBJSPACE_REACHABLE_OBJECTS_FROM

static struct {
    VALUE *objects;
    uint32_t *parents, *index_of, index_size, object_count, object_room, looking_at, unfound;
    const char *roots[MOST_ROOTS];
    uint32_t root_count;
    uint64_t filter[64]; /* hash bits of the objects to find */
} graph;

static uint32_t hash_of(VALUE object) { return (uint32_t)((object >> 3) * 0x9e3779b97f4a7c15u >> 32); }

static bool
grow(void)
{
    uint32_t room = graph.object_room ? graph.object_room * 2 : 1 << 16, size = room * 2;
    VALUE *more_objects = realloc(graph.objects, room * sizeof(VALUE));
    if (more_objects) graph.objects = more_objects;
    uint32_t *more_parents = realloc(graph.parents, room * sizeof(uint32_t));
    if (more_parents) graph.parents = more_parents;
    uint32_t *index = calloc(size, sizeof(uint32_t));
    if (!more_objects || !more_parents || !index) {
        free(index);
        return false;
    }
    free(graph.index_of);
    graph.index_of = index;
    graph.index_size = size;
    graph.object_room = room;
    for (uint32_t i = 0; i < graph.object_count; i++) {
        uint32_t at = hash_of(graph.objects[i]) & (size - 1);
        while (index[at]) at = (at + 1) & (size - 1);
        index[at] = i + 1;
    }
    return true;
}

static void
enter(VALUE object, uint32_t parent)
{
    if (RB_SPECIAL_CONST_P(object) || (state.flags & CUT_BY_OBJECTS)) return;
    int type = RB_BUILTIN_TYPE(object);
    if (type == T_NONE || type == PW_T_MOVED || type == PW_T_ZOMBIE) return;
    if (graph.object_count == graph.object_room && (graph.object_count >= MOST_OBJECTS || !grow())) {
        state.flags |= CUT_BY_OBJECTS;
        return;
    }
    uint32_t hash = hash_of(object), at = hash & (graph.index_size - 1);
    for (; graph.index_of[at]; at = (at + 1) & (graph.index_size - 1)) {
        if (graph.objects[graph.index_of[at] - 1] == object) return;
    }
    graph.objects[graph.object_count] = object;
    graph.parents[graph.object_count] = parent;
    graph.index_of[at] = ++graph.object_count;
    if (!(graph.filter[hash >> 6 & 63] & (uint64_t)1 << (hash & 63))) return;
    for (uint32_t i = 0; i < PW_HELD; i++) {
        if (state.held[i].object != object || state.held[i].seen_at) continue;
        state.held[i].seen_at = graph.object_count;
        graph.unfound--;
    }
}

static void on_reference(VALUE object, void *unused) { enter(object, graph.looking_at); }

/* Skips the machine stack: an object that only a word on the machine stack refers to is not held by the program. */
static void
on_root(const char *category, VALUE object, void *unused)
{
    if (strcmp(category, "machine_context") == 0) return;
    uint32_t number = 0;
    while (number < graph.root_count && strcmp(graph.roots[number], category) != 0) number++;
    if (number == graph.root_count) {
        if (graph.root_count == MOST_ROOTS) return;
        graph.roots[graph.root_count++] = category;
    }
    enter(object, ROOT | number);
}

static void
search(void)
{
    int64_t began = pw_now_ns();
    graph.object_count = graph.object_room = graph.root_count = graph.unfound = 0;
    memset(graph.filter, 0, sizeof graph.filter);
    for (uint32_t i = 0; i < PW_HELD; i++) {
        state.held[i].seen_at = 0;
        if (!state.held[i].object) continue;
        uint32_t hash = hash_of(state.held[i].object);
        graph.filter[hash >> 6 & 63] |= (uint64_t)1 << (hash & 63);
        graph.unfound++;
    }
    rb_objspace_reachable_objects_from_root(on_root, NULL);
    for (graph.looking_at = 0; graph.looking_at < graph.object_count && graph.unfound; graph.looking_at++) {
        if (graph.looking_at % LOOKS_BETWEEN_CLOCKS == 0 && pw_now_ns() - began > MOST_NS) {
            state.flags |= CUT_BY_TIME;
            break;
        }
        rb_objspace_reachable_objects_from(graph.objects[graph.looking_at], on_reference, NULL);
    }
    state.looked_at = graph.looking_at;
    if (!graph.unfound) state.flags &= ~(uint64_t)CUT_BY_OBJECTS;
    state.took_ns = (uint64_t)(pw_now_ns() - began);
}

static void
forget_search(void)
{
    free(graph.objects);
    free(graph.parents);
    free(graph.index_of);
    graph.objects = NULL;
    graph.parents = graph.index_of = NULL;
}

/* [true, object]. For an object that the program must not see: [false, number], with its imemo type or -1. */
static VALUE
shown(VALUE object)
{
    switch (RB_BUILTIN_TYPE(object)) {
      case T_IMEMO: return rb_ary_new_from_args(2, Qfalse, INT2FIX((int)(RBASIC(object)->flags >> FL_USHIFT & 15)));
      case T_ICLASS: return rb_ary_new_from_args(2, Qfalse, INT2FIX(-1));
      default: break;
    }
    if ((int)RB_BUILTIN_TYPE(object) == PW_T_NODE || !RBASIC(object)->klass) {
        return rb_ary_new_from_args(2, Qfalse, INT2FIX(-1));
    }
    return rb_ary_new_from_args(2, Qtrue, object);
}

/* Collects the objects of all paths before the first object is named. Otherwise some objects might be freed.
 * Collections are off meanwhile, because Ruby does not mark the table of the search. */
static VALUE
all_paths(VALUE unused)
{
    VALUE paths = rb_ary_new();
    for (uint32_t i = 0; i < PW_HELD; i++) {
        VALUE path = rb_ary_new();
        rb_ary_push(paths, path);
        if (!state.held[i].seen_at) continue;
        uint32_t at = state.held[i].seen_at - 1, chain[DEEPEST], depth = 0;
        for (; depth < DEEPEST; at = graph.parents[at]) {
            chain[depth++] = at;
            if (graph.parents[at] & ROOT) break;
        }
        bool whole = graph.parents[chain[depth - 1]] & ROOT;
        rb_ary_push(path, whole ? rb_str_new_cstr(graph.roots[graph.parents[chain[depth - 1]] & ~ROOT]) : Qnil);
        while (depth) rb_ary_push(path, shown(graph.objects[chain[--depth]]));
    }
    return paths;
}

static VALUE namer(void) { return rb_path2class("Pitwall::Collect::Holders"); }
static VALUE ask_alone(VALUE unused) { return rb_funcall(namer(), rb_intern("alone?"), 0); }
static VALUE ask_names(VALUE paths) { return rb_funcall(namer(), rb_intern("steps"), 1, paths); }

static VALUE
guarded(VALUE (*call)(VALUE), VALUE argument)
{
    int error = 0;
    VALUE saved = rb_errinfo(), value = rb_protect(call, argument, &error);
    if (!error) return value;
    VALUE raised = rb_errinfo();
    rb_set_errinfo(saved);
    /* An exception such as Ctrl-C is meant for the program, so raise it in the program afterwards. */
    if (!RB_SPECIAL_CONST_P(raised) && RTEST(rb_obj_is_kind_of(raised, rb_eException)) &&
        !RTEST(rb_obj_is_kind_of(raised, rb_eStandardError))) {
        pw_raise_after(raised);
    }
    return Qnil;
}

static void
keep_names(VALUE names)
{
    if (!RB_TYPE_P(names, T_ARRAY)) return;
    pthread_mutex_lock(&pw_current.lock);
    for (long i = 0; i < RARRAY_LEN(names) && i < PW_HELD; i++) {
        VALUE steps = RARRAY_AREF(names, i);
        for (long step = 0; RB_TYPE_P(steps, T_ARRAY) && step < RARRAY_LEN(steps); step++) {
            VALUE text = RARRAY_AREF(steps, step);
            if (!RB_TYPE_P(text, T_STRING)) continue;
            uint32_t string = pw_intern_string(&pw_out.tables, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
            pw_buffer_row(state.columns, (uint64_t[]){state.held[i].site, (uint64_t)i, (uint64_t)step, string},
                          COLUMNS);
            state.rows++;
        }
    }
    pthread_mutex_unlock(&pw_current.lock);
}

void
pw_holders_find(void)
{
    state.found = true;
    if (guarded(ask_alone, Qnil) != Qtrue) {
        state.flags |= OTHER_RACTORS; /* other Ractors create and free objects meanwhile */
        return;
    }
    VALUE off = rb_gc_disable(), paths;
    search();
    paths = guarded(all_paths, Qnil);
    forget_search();
    if (off == Qfalse) rb_gc_enable();
    keep_names(guarded(ask_names, paths));
    RB_GC_GUARD(paths);
}
#else
void
pw_holders_find(void)
{
    state.found = true;
    state.flags |= NOT_HERE;
}
#endif

void
pw_holders_write(void)
{
    if (!state.found) return;
    state.found = false;
    pw_writer_table(&pw_out.writer, "HOLD", HEADS,
                    (uint64_t[]){state.flags, state.looked_at, state.took_ns, state.rows}, COLUMNS, state.columns);
}

void
pw_holders_forget(bool frees)
{
    if (frees) pw_buffers_free(state.columns, COLUMNS);
    memset(state.columns, 0, sizeof state.columns);
    memset(state.held, 0, sizeof state.held);
    state.wanted = state.found = false;
}

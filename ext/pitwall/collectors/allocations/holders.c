#include "collectors/allocations/holders.h"
#include "output/output.h"
#include "session/change.h"
#include "session/session.h"
#include "tools/clock.h"
#include "vm/vm_compat.h"
#include <string.h>

enum { MOST_OBJECTS = 4000000, MOST_ROOTS = 32, DEEPEST = 64, LOOKS_BETWEEN_CLOCKS = 1024 };
#define MOST_NS 5000000000
#define ROOT 0x80000000u /* in a parent: the number of a root's category */
enum { CUT_BY_TIME = 1, CUT_BY_OBJECTS = 2, OTHER_RACTORS = 4, NOT_HERE = 8 }; /* flags of HOLD */
enum { HEADS = 4, COLUMNS = 4 };

static bool wanted;
static struct { VALUE object; uint32_t site, seen_at; } held[PW_HELD];
static uint32_t held_count;
static uint32_t sites[PW_HELD / PW_HELD_OF_SITE], seen[PW_HELD / PW_HELD_OF_SITE], site_count;

static uint64_t flags, looked_at, took_ns, rows;
static pw_buffer columns[COLUMNS];
static bool found; /* there is something to write */

bool pw_holders_wanted(void) { return wanted; }

void
pw_holders_start(bool is)
{
    wanted = is;
    held_count = site_count = 0;
    flags = looked_at = took_ns = rows = 0;
    found = false;
}

void
pw_holders_choose(uint32_t site)
{
    if (site_count == PW_HELD / PW_HELD_OF_SITE) return;
    seen[site_count] = 0;
    sites[site_count++] = site;
}

/* The first, and then ever later ones take the places of others: they were not all made at once. */
void
pw_holders_see(uint32_t site, VALUE object)
{
    for (uint32_t i = 0; i < site_count; i++) {
        if (sites[i] != site) continue;
        uint32_t n = seen[i]++;
        if (n >= PW_HELD_OF_SITE && (n & (n - 1))) return;
        held[i * PW_HELD_OF_SITE + n % PW_HELD_OF_SITE].object = object;
        held[i * PW_HELD_OF_SITE + n % PW_HELD_OF_SITE].site = site;
    }
}

#ifdef HAVE_RB_OBJSPACE_REACHABLE_OBJECTS_FROM

static VALUE *objects;
static uint32_t *parents, *index_of, index_size, object_count, object_room, looking_at, unfound;
static const char *roots[MOST_ROOTS];
static uint32_t root_count;
static uint64_t filter[64]; /* of the objects looked for */

static uint32_t hash_of(VALUE object) { return (uint32_t)((object >> 3) * 0x9e3779b97f4a7c15u >> 32); }

static bool
grow(void)
{
    uint32_t room = object_room ? object_room * 2 : 1 << 16, size = room * 2;
    VALUE *more_objects = realloc(objects, room * sizeof(VALUE));
    if (more_objects) objects = more_objects;
    uint32_t *more_parents = realloc(parents, room * sizeof(uint32_t));
    if (more_parents) parents = more_parents;
    uint32_t *index = calloc(size, sizeof(uint32_t));
    if (!more_objects || !more_parents || !index) {
        free(index);
        return false;
    }
    free(index_of);
    index_of = index;
    index_size = size;
    object_room = room;
    for (uint32_t i = 0; i < object_count; i++) {
        uint32_t at = hash_of(objects[i]) & (size - 1);
        while (index[at]) at = (at + 1) & (size - 1);
        index[at] = i + 1;
    }
    return true;
}

static void
enter(VALUE object, uint32_t parent)
{
    if (RB_SPECIAL_CONST_P(object) || (flags & CUT_BY_OBJECTS)) return;
    int type = RB_BUILTIN_TYPE(object);
    if (type == T_NONE || type == PW_T_MOVED || type == PW_T_ZOMBIE) return;
    if (object_count == object_room && (object_count >= MOST_OBJECTS || !grow())) {
        flags |= CUT_BY_OBJECTS;
        return;
    }
    uint32_t hash = hash_of(object), at = hash & (index_size - 1);
    for (; index_of[at]; at = (at + 1) & (index_size - 1)) {
        if (objects[index_of[at] - 1] == object) return;
    }
    objects[object_count] = object;
    parents[object_count] = parent;
    index_of[at] = ++object_count;
    if (!(filter[hash >> 6 & 63] & (uint64_t)1 << (hash & 63))) return;
    for (uint32_t i = 0; i < PW_HELD; i++) {
        if (held[i].object != object || held[i].seen_at) continue;
        held[i].seen_at = object_count;
        unfound--;
    }
}

static void on_reference(VALUE object, void *unused) { enter(object, looking_at); }

/* What only a word on the machine's stack points to is not held by the program. */
static void
on_root(const char *category, VALUE object, void *unused)
{
    if (strcmp(category, "machine_context") == 0) return;
    uint32_t number = 0;
    while (number < root_count && strcmp(roots[number], category) != 0) number++;
    if (number == root_count) {
        if (root_count == MOST_ROOTS) return;
        roots[root_count++] = category;
    }
    enter(object, ROOT | number);
}

static void
search(void)
{
    int64_t began = pw_now_ns();
    object_count = object_room = root_count = unfound = 0;
    memset(filter, 0, sizeof filter);
    for (uint32_t i = 0; i < PW_HELD; i++) {
        held[i].seen_at = 0;
        if (!held[i].object) continue;
        uint32_t hash = hash_of(held[i].object);
        filter[hash >> 6 & 63] |= (uint64_t)1 << (hash & 63);
        unfound++;
    }
    rb_objspace_reachable_objects_from_root(on_root, NULL);
    for (looking_at = 0; looking_at < object_count && unfound; looking_at++) {
        if (looking_at % LOOKS_BETWEEN_CLOCKS == 0 && pw_now_ns() - began > MOST_NS) {
            flags |= CUT_BY_TIME;
            break;
        }
        rb_objspace_reachable_objects_from(objects[looking_at], on_reference, NULL);
    }
    looked_at = looking_at;
    if (!unfound) flags &= ~(uint64_t)CUT_BY_OBJECTS;
    took_ns = (uint64_t)(pw_now_ns() - began);
}

static void
forget_search(void)
{
    free(objects);
    free(parents);
    free(index_of);
    objects = NULL;
    parents = index_of = NULL;
}

/* What the program may never get to see is told by a word. */
static VALUE
shown(VALUE object)
{
    switch (RB_BUILTIN_TYPE(object)) {
      case T_IMEMO: return rb_ary_new_from_args(2, Qfalse, INT2FIX((int)(RBASIC(object)->flags >> FL_USHIFT & 15)));
      case T_ICLASS: return rb_ary_new_from_args(2, Qfalse, INT2FIX(-1));
      default: break;
    }
    if ((int)RB_BUILTIN_TYPE(object) == PW_T_NODE || !RBASIC(object)->klass) return rb_ary_new_from_args(2, Qfalse, INT2FIX(-1));
    return rb_ary_new_from_args(2, Qtrue, object);
}

/* The objects of all paths, before the first is named: else some might be freed. Collections are off meanwhile, as what has been
 * searched is not marked. */
static VALUE
all_paths(VALUE unused)
{
    VALUE paths = rb_ary_new();
    for (uint32_t i = 0; i < PW_HELD; i++) {
        VALUE path = rb_ary_new();
        rb_ary_push(paths, path);
        if (!held[i].seen_at) continue;
        uint32_t at = held[i].seen_at - 1, chain[DEEPEST], depth = 0;
        for (; depth < DEEPEST; at = parents[at]) {
            chain[depth++] = at;
            if (parents[at] & ROOT) break;
        }
        bool whole = parents[chain[depth - 1]] & ROOT;
        rb_ary_push(path, whole ? rb_str_new_cstr(roots[parents[chain[depth - 1]] & ~ROOT]) : Qnil);
        while (depth) rb_ary_push(path, shown(objects[chain[--depth]]));
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
    /* Ctrl-C is the program's: it came while we were at it. */
    if (!RB_SPECIAL_CONST_P(raised) && RTEST(rb_obj_is_kind_of(raised, rb_eException)) && !RTEST(rb_obj_is_kind_of(raised, rb_eStandardError))) pw_raise_after(raised);
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
            pw_buffer_row(columns, (uint64_t[]){held[i].site, (uint64_t)i, (uint64_t)step, string}, COLUMNS);
            rows++;
        }
    }
    pthread_mutex_unlock(&pw_current.lock);
}

void
pw_holders_find(void)
{
    found = true;
    if (guarded(ask_alone, Qnil) != Qtrue) {
        flags |= OTHER_RACTORS; /* whose objects come and go meanwhile */
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
    found = true;
    flags |= NOT_HERE;
}
#endif

void
pw_holders_write(void)
{
    if (!found) return;
    found = false;
    pw_writer_table(&pw_out.writer, "HOLD", HEADS, (uint64_t[]){flags, looked_at, took_ns, rows}, COLUMNS, columns);
}

void
pw_holders_forget(bool frees)
{
    if (frees) pw_buffers_free(columns, COLUMNS);
    memset(columns, 0, sizeof columns);
    memset(held, 0, sizeof held);
    wanted = found = false;
}

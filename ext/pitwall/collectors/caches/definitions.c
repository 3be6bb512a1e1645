#include "collectors/caches/definitions.h"
#include "collectors/caches/operators.h"
#include "collectors/caches/subjects.h"
#include "collectors/caches/weak_map.h"
#include "output/output.h"
#include "session/modules.h"
#include "session/session.h"
#include "tools/quietly.h"
#include <stdlib.h>
#include <string.h>

static struct {
    VALUE counts; /* an ObjectSpace::WeakMap: module => number of methods defined on it; nil: nobody asked */
    VALUE helper; /* Pitwall::Collect::Definitions */
    ID keys, dump;
    char *json;   /* of the chunk; NULL: not measured */
    size_t size;
} state = {.counts = Qnil};

void
pw_definitions_start(bool wanted)
{
    static bool ready;
    state.counts = Qnil;
    if (!wanted) return;
    if (!ready) {
        rb_gc_register_address(&state.counts);
        state.keys = rb_intern("keys");
        state.dump = rb_intern("dump");
        ready = true;
    }
    VALUE collect = rb_const_get(rb_const_get(rb_cObject, rb_intern("Pitwall")), rb_intern("Collect"));
    state.helper = rb_const_get(collect, rb_intern("Definitions"));
    rb_gc_register_mark_object(state.helper);
    state.counts = pw_weak_map_new();
}

/* A WeakMap belongs to the main Ractor. Nothing mixes in a singleton class. */
void
pw_definition_noted(VALUE module)
{
    if (NIL_P(state.counts) || !pw_in_main_ractor() || pw_object_of_singleton(module) != Qundef) return;
    long before = pw_weak_map_get(state.counts, module);
    pw_weak_map_set(state.counts, module, before > 0 ? before + 1 : 1);
}

static VALUE
measure(VALUE unused)
{
    VALUE modules = rb_funcall(state.counts, state.keys, 0), rows = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(modules); i++) {
        VALUE module = rb_ary_entry(modules, i);
        long count = pw_weak_map_get(state.counts, module);
        pw_subject s = {.size = 0};
        pw_subject_of_module(&s, module);
        VALUE name = rb_utf8_str_new(s.text, (long)s.size);
        if (count > 0) rb_ary_push(rows, rb_ary_new_from_args(3, module, name, LONG2FIX(count)));
    }
    VALUE json = rb_funcall(state.helper, state.dump, 1, rows);
    if (!RB_TYPE_P(json, T_STRING)) return Qnil;
    state.size = (size_t)RSTRING_LEN(json);
    state.json = malloc(state.size);
    if (state.json) memcpy(state.json, RSTRING_PTR(json), state.size);
    RB_GC_GUARD(json);
    return Qnil;
}

void
pw_definitions_measure(void)
{
    if (NIL_P(state.counts) || !pw_in_main_ractor()) return;
    pw_own_begin();
    pw_attempt(measure, Qnil, NULL);
    pw_own_end();
    state.counts = Qnil;
}

void
pw_definitions_write(void)
{
    if (state.json) pw_writer_chunk(&pw_out.writer, "CHDF", state.json, state.size);
}

void
pw_definitions_forget(bool frees)
{
    if (frees) free(state.json);
    state.json = NULL;
    state.counts = Qnil;
}

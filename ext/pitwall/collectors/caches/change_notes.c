#include "collectors/caches/change_notes.h"
#include "collectors/caches/changes.h"
#include "collectors/caches/definitions.h"
#include "collectors/caches/line_watch.h"
#include "collectors/caches/operators.h"
#include <string.h>

enum { MOST_NAMES = 32 };

void (*pw_hook_defined)(VALUE receiver, ID hook, bool singleton);
bool (*pw_is_own_hook)(pw_call_place place);

static struct {
    ID const_added, inherited, method_added, method_removed, method_undefined, singleton_method_added,
        singleton_method_removed, singleton_method_undefined;
    ID alias, copy, dup, clone, define, new, private, public, protected, private_class, public_class, autoload;
    bool const_added_known; /* this Ruby calls const_added (3.2) */
} ids;

static const uint64_t nothing[PW_VM_COUNTERS];

static bool
any(const uint64_t increase[PW_VM_COUNTERS])
{
    return memcmp(increase, nothing, sizeof nothing) != 0;
}

static ID
id_of(VALUE name)
{
    if (RB_SYMBOL_P(name)) return rb_sym2id(name);
    if (!RB_TYPE_P(name, T_STRING)) return 0;
    return rb_check_id(&name);
}

static bool is_module(VALUE object) { return RB_TYPE_P(object, T_CLASS) || RB_TYPE_P(object, T_MODULE); }

static void
note_module(pw_watched_call *c, int change, VALUE module)
{
    pw_subject s = {.size = 0};
    pw_subject_of_module(&s, module);
    pw_change_note(change, &s, c->increase);
}

static void
note_pair(pw_watched_call *c, int change, VALUE mixin, VALUE target)
{
    pw_subject s = {.size = 0};
    pw_subject_of_pair(&s, mixin, target);
    pw_change_note(change, &s, c->increase);
}

static void
note_constant(pw_watched_call *c, int change, VALUE name)
{
    pw_subject s = {.size = 0};
    ID id = id_of(name);
    if (id) pw_subject_of_constant(&s, is_module(c->self) ? c->self : 0, id);
    else if (RB_TYPE_P(name, T_STRING)) pw_subject_add(&s, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    pw_change_note(change, &s, c->increase);
}

static void
note_method(const uint64_t *increase, int change, VALUE module, ID name)
{
    pw_subject s = {.size = 0};
    pw_subject_of_method(&s, module, name);
    if (change == PW_METHOD_ADDED || change == PW_METHOD_ALIASED) pw_definition_noted(module);
    if (pw_is_basic_operator(module, name)) change = PW_OPERATOR_REDEFINED;
    pw_change_note(change, &s, increase);
}

static void
note_singleton_method(const uint64_t *increase, int change, VALUE object, ID name)
{
    pw_subject s = {.size = 0};
    pw_subject_of_object(&s, object);
    pw_subject_add(&s, ".", 1);
    pw_subject_add_id(&s, name);
    pw_change_note(change, &s, increase);
}

/* ---- constants ---- */

static void
after_const_set(pw_watched_call *c)
{
    if (!c->noted && c->argc && (c->returned || any(c->increase))) note_constant(c, PW_CONSTANT_SET, c->argv[0]);
}

static void
after_const_remove(pw_watched_call *c)
{
    if (c->returned && c->argc) note_constant(c, PW_CONSTANT_REMOVED, c->argv[0]);
}

static void
before_autoload(pw_watched_call *c)
{
    ID id = c->argc ? id_of(c->argv[0]) : 0;
    c->before = id && is_module(c->self) && rb_const_defined_at(c->self, id);
}

static void
after_autoload(pw_watched_call *c)
{
    if (!c->noted && c->returned && !c->before) note_constant(c, PW_CONSTANT_AUTOLOAD, c->argv[0]);
}

static void
after_const_visibility(pw_watched_call *c)
{
    for (int i = 0; i < c->argc && c->returned; i++) {
        note_constant(c, PW_CONSTANT_VISIBILITY, c->argv[i]);
        memset(c->increase, 0, sizeof c->increase);
    }
}

/* ---- ancestors ---- */

static long
ancestors_of(VALUE object)
{
    VALUE klass = is_module(object) ? object : CLASS_OF(object);
    return klass ? RARRAY_LEN(rb_mod_ancestors(klass)) : 0;
}

static void before_include(pw_watched_call *c) { c->before = is_module(c->argv[0]) ? ancestors_of(c->argv[0]) : 0; }

static void
after_mixin(pw_watched_call *c, int change)
{
    if (!is_module(c->argv[0])) return;
    if (ancestors_of(c->argv[0]) != c->before || any(c->increase)) note_pair(c, change, c->self, c->argv[0]);
}

static void after_include(pw_watched_call *c) { after_mixin(c, PW_MODULE_INCLUDED); }
static void after_prepend(pw_watched_call *c) { after_mixin(c, PW_MODULE_PREPENDED); }

static VALUE class_now(VALUE object) { return RB_SPECIAL_CONST_P(object) ? 0 : RBASIC_CLASS(object); }

static void
before_extend(pw_watched_call *c)
{
    VALUE klass = class_now(c->argv[0]);
    c->kept = klass;
    c->before = klass ? RARRAY_LEN(rb_mod_ancestors(klass)) : 0;
}

static void
after_extend(pw_watched_call *c)
{
    VALUE klass = class_now(c->argv[0]);
    if (!klass) return;
    if (klass == c->kept && RARRAY_LEN(rb_mod_ancestors(klass)) == c->before && !any(c->increase)) return;
    pw_subject_first_time(klass);
    note_pair(c, PW_OBJECT_EXTENDED, c->self, c->argv[0]);
}

static void
after_refine(pw_watched_call *c)
{
    if (!c->returned || !is_module(c->argv[0])) return;
    pw_subject s = {.size = 0};
    pw_subject_of_module(&s, c->argv[0]);
    pw_subject_add(&s, " in ", 4);
    pw_subject_of_module(&s, c->self);
    pw_change_note(PW_REFINEMENT_MADE, &s, c->increase);
}

static void
after_using(pw_watched_call *c)
{
    if (c->returned && is_module(c->argv[0])) note_module(c, PW_REFINEMENT_USED, c->argv[0]);
}

/* ---- methods ---- */

static void
after_define(pw_watched_call *c)
{
    ID id = c->argc ? id_of(c->argv[0]) : 0;
    if (!c->noted && c->returned && id && is_module(c->self)) note_method(c->increase, PW_METHOD_ADDED, c->self, id);
}

static void
after_alias(pw_watched_call *c)
{
    ID id = id_of(c->argv[0]);
    if (!c->noted && c->returned && id) note_method(c->increase, PW_METHOD_ALIASED, c->self, id);
}

static void
after_removal(pw_watched_call *c, int change)
{
    for (int i = 0; i < c->argc && c->returned && !c->noted; i++) {
        ID id = id_of(c->argv[i]);
        if (id) note_method(c->increase, change, c->self, id);
        memset(c->increase, 0, sizeof c->increase);
    }
}

static void after_remove_method(pw_watched_call *c) { after_removal(c, PW_METHOD_REMOVED); }
static void after_undef_method(pw_watched_call *c) { after_removal(c, PW_METHOD_UNDEFINED); }

/* The names given to `private` and the like: arguments, or one Array. */
static int
names_of(const pw_watched_call *c, const VALUE **names)
{
    *names = c->argv;
    if (c->argc != 1 || !RB_TYPE_P(c->argv[0], T_ARRAY)) return c->argc;
    *names = RARRAY_CONST_PTR(c->argv[0]);
    return (int)RARRAY_LEN(c->argv[0]);
}

/* Two bits a name: 0 none, 1 public, 2 protected, 3 private. rb_obj_respond_to and the like would call the program's
 * methods, so the visibility is asked of Module's own functions. */
static long
visibilities(VALUE module, const VALUE *names, int n)
{
    long bits = 0;
    for (int i = 0; i < n && i < MOST_NAMES - 1; i++) {
        ID id = id_of(names[i]);
        bits |= (long)(id ? pw_visibility_of(module, id) : 0) << (2 * i);
    }
    return bits;
}

static void
before_visibility_in(pw_watched_call *c, VALUE module)
{
    const VALUE *names;
    int n = names_of(c, &names);
    c->before = module ? visibilities(module, names, n) : 0;
}

static void
after_visibility_in(pw_watched_call *c, VALUE module)
{
    const VALUE *names;
    int n = names_of(c, &names);
    if (c->noted || !c->returned || !module) return;
    long now = visibilities(module, names, n);
    for (int i = 0; i < n && i < MOST_NAMES - 1; i++) {
        if ((now >> (2 * i) & 3) == (c->before >> (2 * i) & 3)) continue;
        note_method(c->increase, PW_METHOD_VISIBILITY, module, id_of(names[i]));
        memset(c->increase, 0, sizeof c->increase);
    }
    for (int i = MOST_NAMES - 1; i < n; i++) pw_change_lost();
}

static VALUE module_or_none(VALUE object) { return is_module(object) ? object : 0; }
static void before_visibility(pw_watched_call *c) { before_visibility_in(c, module_or_none(c->self)); }
static void after_visibility(pw_watched_call *c) { after_visibility_in(c, module_or_none(c->self)); }

static VALUE
singleton_of(VALUE object)
{
    VALUE klass = class_now(object);
    return klass && pw_object_of_singleton(klass) == object ? klass : 0;
}

static void before_singleton_visibility(pw_watched_call *c) { before_visibility_in(c, singleton_of(c->self)); }
static void after_singleton_visibility(pw_watched_call *c) { after_visibility_in(c, singleton_of(c->self)); }

static void
after_define_singleton(pw_watched_call *c)
{
    ID id = c->argc ? id_of(c->argv[0]) : 0;
    if (!c->noted && c->returned && id) note_singleton_method(c->increase, PW_METHOD_ADDED, c->self, id);
}

/* ---- classes ---- */

static void before_singleton_class(pw_watched_call *c) { c->before = singleton_of(c->self) != 0; }

static void
after_singleton_class(pw_watched_call *c)
{
    VALUE klass = singleton_of(c->self);
    if (!klass || c->before) return;
    pw_subject_first_time(klass);
    note_module(c, PW_SINGLETON_CLASS_MADE, klass);
}

/* The place is remembered first: the block given to Class.new defines methods. */
static void
before_class(pw_watched_call *c)
{
    if (is_module(c->self)) pw_subject_made_here(c->self);
}

static void after_class(pw_watched_call *c) { note_module(c, PW_CLASS_MADE, c->self); }
static void after_module(pw_watched_call *c) { note_module(c, PW_MODULE_MADE, c->self); }

/* Ruby 4.0 has one initialize_copy for all objects. */
static void
after_copy(pw_watched_call *c)
{
    if (is_module(c->self)) note_module(c, PW_CLASS_COPIED, c->self);
}

static void
after_struct(pw_watched_call *c)
{
    if (!c->returned || !is_module(c->result)) return;
    pw_subject_made_here(c->result);
    note_module(c, PW_CLASS_MADE, c->result);
}

/* ---- variables, tracing ---- */

static void
note_variable(pw_watched_call *c, int change)
{
    pw_subject s = {.size = 0};
    ID id = c->argc ? id_of(c->argv[0]) : 0;
    pw_subject_of_object(&s, c->self);
    pw_subject_add(&s, " ", 1);
    if (id) pw_subject_add_id(&s, id);
    pw_change_note(change, &s, c->increase);
}

static void
after_variable(pw_watched_call *c)
{
    if (any(c->increase)) note_variable(c, PW_SHAPE_MADE);
}

static void
after_class_variable(pw_watched_call *c)
{
    if (any(c->increase)) note_variable(c, PW_CLASS_VARIABLE_SET);
}

static void
after_trace_func(pw_watched_call *c)
{
    pw_subject s = {.size = 0};
    if (!c->returned || NIL_P(c->argv[0])) return;
    pw_subject_add(&s, "set_trace_func", 14);
    pw_change_note(PW_TRACING_ENABLED, &s, c->increase);
}

const pw_call_notes
    pw_notes_const_set = {.after = after_const_set},
    pw_notes_const_remove = {.after = after_const_remove},
    pw_notes_autoload = {before_autoload, after_autoload, .quiet = false},
    pw_notes_const_visibility = {.after = after_const_visibility},
    pw_notes_include = {before_include, after_include, false, false},
    pw_notes_prepend = {before_include, after_prepend, false, false},
    pw_notes_extend = {before_extend, after_extend, false, false},
    pw_notes_refine = {.after = after_refine},
    pw_notes_using = {.after = after_using},
    pw_notes_define = {.after = after_define},
    pw_notes_alias = {.after = after_alias},
    pw_notes_visibility = {before_visibility, after_visibility, false, false},
    pw_notes_singleton_visibility = {before_singleton_visibility, after_singleton_visibility, false, false},
    pw_notes_remove_method = {.after = after_remove_method},
    pw_notes_undef_method = {.after = after_undef_method},
    pw_notes_define_singleton = {.after = after_define_singleton},
    pw_notes_singleton_class = {before_singleton_class, after_singleton_class, false, false},
    pw_notes_class = {before_class, after_class, .makes_class = true},
    pw_notes_module = {before_class, after_module, .makes_class = true},
    pw_notes_copy = {before_class, after_copy, .makes_class = true},
    pw_notes_struct = {.after = after_struct, .quiet = true},
    pw_notes_variable = {.after = after_variable},
    pw_notes_class_variable = {.after = after_class_variable},
    pw_notes_trace_func = {.after = after_trace_func};

/* ---- hooks ---- */

bool
pw_is_hook(ID name)
{
    return name == ids.method_added || name == ids.singleton_method_added || name == ids.const_added ||
           name == ids.method_removed || name == ids.method_undefined || name == ids.singleton_method_removed ||
           name == ids.singleton_method_undefined || name == ids.inherited;
}

/* What the code that caused the hook does, as a kind of change. -1: nothing to note. */
static int
kind_of_addition(const pw_call_kind *by, ID name)
{
    /* `def` is an instruction with the words name and code. `alias` calls a method whose frame is already gone. */
    if (by->pc) return by->pc[-2] == name ? PW_METHOD_ADDED : PW_METHOD_ALIASED;
    if (by->name == ids.alias) return PW_METHOD_ALIASED;
    if (by->name == ids.private || by->name == ids.public || by->name == ids.protected ||
        by->name == ids.private_class || by->name == ids.public_class) return PW_METHOD_VISIBILITY;
    return PW_METHOD_ADDED;
}

/* `class Foo` and `module Foo` set a constant, too. Their instruction has the words name, code and flags, which are
 * pc[-3] to pc[-1]. An assignment has the name at pc[-1]. */
static int
kind_of_constant(const pw_call_kind *by, ID name)
{
    if (!by->pc) return by->name && by->name == ids.autoload ? PW_CONSTANT_AUTOLOAD : PW_CONSTANT_SET;
    if (by->pc[-1] == name) return PW_CONSTANT_SET;
    if (by->pc[-3] != name) return PW_CONSTANT_SET;
    return (by->pc[-1] & 7) == 2 ? PW_MODULE_MADE : PW_CLASS_MADE;
}

static void
note_inherited(VALUE klass, const uint64_t *increase)
{
    pw_subject s = {.size = 0};
    if (!is_module(klass)) return;
    pw_subject_of_module(&s, klass);
    pw_change_note(PW_CLASS_MADE, &s, increase);
}

/* Struct.new and Data.define are watched. 4.0 copies a class's methods in Kernel#dup and Kernel#clone, older Rubies in
 * Module#initialize_copy. */
static bool
defines_quietly(const pw_call_kind *by, pw_call_place caller)
{
    if (by->name == ids.new || by->name == ids.define) return pw_call_is_open(caller);
    return by->name && (by->name == ids.copy || by->name == ids.dup || by->name == ids.clone) && is_module(by->self);
}

void
pw_hook_called(ID hook, VALUE receiver, VALUE argument, pw_call_place place)
{
    uint64_t increase[PW_VM_COUNTERS];
    pw_call_place caller = pw_caller_of(place);
    pw_call_kind by = pw_call_kind_at(caller);
    if (pw_is_own_hook && pw_is_own_hook(caller)) return; /* `super` of a hook of the program, which was noted */
    if (hook == ids.inherited && !by.name && ids.const_added_known) return;
    if (hook == ids.inherited && by.name && pw_call_is_open(caller)) {
        /* Class.new made a class, and will run its block now. */
        if (pw_vm_counters_claim(increase)) pw_call_adds(caller, increase);
        return;
    }
    /* Struct.new, Data.define and copying a class define methods: the call itself is noted. */
    if (defines_quietly(&by, caller) && hook != ids.const_added) return;
    pw_vm_counters_claim(increase);
    pw_line_earlier(increase);
    /* A changed method sets no constant: code before it on the line has done so. */
    if (by.pc && hook != ids.const_added && hook != ids.inherited && increase[PW_VM_CONSTANTS]) {
        uint64_t earlier[PW_VM_COUNTERS] = {[PW_VM_CONSTANTS] = increase[PW_VM_CONSTANTS]};
        increase[PW_VM_CONSTANTS] = 0;
        pw_line_caused(caller.ec, caller.cfp, earlier);
    }
    ID name = RB_SYMBOL_P(argument) ? rb_sym2id(argument) : 0;
    if (hook == ids.inherited) note_inherited(argument, increase);
    else if (!name) return;
    else if (hook == ids.const_added) {
        pw_subject s = {.size = 0};
        pw_subject_of_constant(&s, receiver, name);
        pw_change_note(kind_of_constant(&by, name), &s, increase);
    }
    else if (hook == ids.method_added) note_method(increase, kind_of_addition(&by, name), receiver, name);
    else if (hook == ids.method_removed) note_method(increase, PW_METHOD_REMOVED, receiver, name);
    else if (hook == ids.method_undefined) note_method(increase, PW_METHOD_UNDEFINED, receiver, name);
    else {
        VALUE klass = singleton_of(receiver);
        if (klass) pw_subject_first_time(klass);
        note_singleton_method(increase, hook == ids.singleton_method_added ? kind_of_addition(&by, name)
            : hook == ids.singleton_method_removed ? PW_METHOD_REMOVED : PW_METHOD_UNDEFINED, receiver, name);
    }
    pw_call_noted(caller);
    bool defined = hook == ids.method_added || hook == ids.singleton_method_added;
    if (!defined || !pw_is_hook(name) || !pw_hook_defined) return;
    pw_hook_defined(receiver, name, hook == ids.singleton_method_added);
}

void
pw_change_notes_init(void)
{
    static const struct { ID *id; const char *name; } names[] = {
        {&ids.const_added, "const_added"}, {&ids.inherited, "inherited"}, {&ids.method_added, "method_added"},
        {&ids.method_removed, "method_removed"}, {&ids.method_undefined, "method_undefined"},
        {&ids.singleton_method_added, "singleton_method_added"},
        {&ids.singleton_method_removed, "singleton_method_removed"},
        {&ids.singleton_method_undefined, "singleton_method_undefined"}, {&ids.alias, "alias_method"},
        {&ids.autoload, "autoload"}, {&ids.copy, "initialize_copy"},
        {&ids.dup, "dup"}, {&ids.clone, "clone"}, {&ids.define, "define"}, {&ids.new, "new"},
        {&ids.private, "private"}, {&ids.public, "public"}, {&ids.protected, "protected"},
        {&ids.private_class, "private_class_method"}, {&ids.public_class, "public_class_method"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) *names[i].id = rb_intern(names[i].name);
    ids.const_added_known = rb_method_boundp(rb_cModule, ids.const_added, 0);
}

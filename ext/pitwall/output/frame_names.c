#include "output/frame_names.h"
#include "output/output.h"
#include "session/session.h"
#include "tools/quietly.h"
#include "vm/stack_walk.h"
#include "vm/valid_frames.h"
#include <ctype.h>
#include <ruby/debug.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 64 };

static struct {
    VALUE environment; /* ENV */
    bool (*called)(VALUE frame, VALUE *klass, ID *name);
} state;

const char *
pw_last_path_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool
starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The length of the label's part before the name of the method or body, e.g. "block (2 levels) in ". */
static long
prefix_length(const char *label)
{
    if (!starts_with(label, "block") && !starts_with(label, "rescue in ") && !starts_with(label, "ensure in ")) {
        return 0;
    }
    const char *end = label;
    for (const char *at; (at = strstr(end, " in ")) != NULL;) end = at + 4;
    return end - label;
}

/* The path of an anonymous class, module or object, e.g. #<Class:0x000...>, without the address. The address differs
 * in every run. */
static VALUE
without_address(const char *path, const char *address, bool singleton)
{
    bool module = starts_with(path, "#<Module:"), nameless = module || starts_with(path, "#<Class:") ||
                  starts_with(path, "#<#<");
    if (!singleton || nameless) return rb_str_new_cstr(module ? "(anonymous module)" : "(anonymous class)");
    return rb_sprintf("%.*s>", (int)(address - path), path); /* a singleton method of an object: #<Object> */
}

static bool
same_text(VALUE a, VALUE b)
{
    return RB_TYPE_P(a, T_STRING) && RB_TYPE_P(b, T_STRING) && rb_str_equal(a, b) == Qtrue;
}

/* The class path of a C function, without an address. ENV is an object with singleton methods. All methods of ENV are C
 * functions. */
static VALUE
c_function_owner(VALUE path, bool singleton)
{
    const char *text = StringValueCStr(path), *address = starts_with(text, "#<") ? strstr(text, ":0x") : NULL;
    if (!address) return path;
    if (singleton && same_text(path, rb_any_to_s(state.environment))) return rb_str_new_cstr("ENV");
    return without_address(text, address, singleton);
}

/* Like rb_profile_frame_qualified_method_name, except for the class path. nil: unknown. */
static VALUE
describe_c_function(VALUE frame)
{
    VALUE path = rb_profile_frame_classpath(frame), method = rb_profile_frame_method_name(frame);
    if (!RB_TYPE_P(method, T_STRING)) return rb_profile_frame_full_label(frame);
    if (!RB_TYPE_P(path, T_STRING) || RSTRING_LEN(path) == 0) return method;
    bool singleton = RTEST(rb_profile_frame_singleton_method_p(frame));
    return rb_sprintf("%" PRIsVALUE "%s%" PRIsVALUE, c_function_owner(path, singleton), singleton ? "." : "#", method);
}

static long
first_line_of(VALUE frame)
{
    VALUE line = rb_profile_frame_first_lineno(frame);
    return RB_FIXNUM_P(line) ? FIX2LONG(line) : 0;
}

/* Does the iseq belong to the method `owner`? A frame that was read half pushed can have another frame's owner. All
 * iseqs in a method's body have the method's base label. */
static bool
owner_fits(VALUE owner, VALUE frame)
{
    if (RB_SPECIAL_CONST_P(owner) || owner == frame || !pw_frame_valid(owner) || !pw_method_is_ruby(owner)) {
        return false;
    }
    return same_text(rb_profile_frame_base_label(frame), rb_profile_frame_base_label(owner));
}

/* Is the frame a method's code whose owner is missing or wrong? That happens when the frame was pushed or popped
 * during the reading. A frame without an owner (a Ractor's block) and a method not written with `def` (define_method)
 * are named by their place in the source instead. */
static bool
lacks_owner(VALUE owner, VALUE frame)
{
    if (!owner || !pw_walk_in_use() || !pw_frame_is_iseq(frame)) return false;
    if (owner != PW_DOUBTFUL && (!pw_frame_valid(owner) || !pw_method_is_ruby(owner))) return false;
    return RB_TYPE_P(rb_profile_frame_method_name(frame), T_STRING);
}

/* Finds the owner through other frames of the same method. Of the owners with the frame's name and file, takes the one
 * that begins last at or before the frame's first line. */
static VALUE
owner_of_others(VALUE frame)
{
    VALUE owners[BATCH], best = 0; /* on the machine stack: kept alive and in place */
    VALUE base = rb_profile_frame_base_label(frame), path = rb_profile_frame_path(frame);
    long line = first_line_of(frame), best_line = 0;
    pw_intern *t = &pw_out.tables;
    for (uint32_t i = 0, n = BATCH; n == BATCH;) {
        pthread_mutex_lock(&pw_current.lock);
        for (n = 0; i < t->unresolved_from && n < BATCH; i++) {
            if (!RB_SPECIAL_CONST_P(t->frames[i].owner)) owners[n++] = t->frames[i].owner;
        }
        pthread_mutex_unlock(&pw_current.lock);
        for (uint32_t at = 0; at < n; at++) {
            long its = first_line_of(owners[at]);
            if (its > line || its <= best_line || !same_text(base, rb_profile_frame_base_label(owners[at]))) continue;
            if (same_text(path, rb_profile_frame_path(owners[at]))) best = owners[at], best_line = its;
        }
    }
    return best;
}

/* The name of a Ruby frame. A method is Class#method or Class.method, with the class path. A body (<main>,
 * <class:Foo>) has Ruby's label. A method of an anonymous class gets its place in the source. Since 3.4 labels contain
 * the class; base labels do not. */
static VALUE
describe_ruby(VALUE frame, VALUE owner, const char *file, uint32_t line)
{
    VALUE label = rb_profile_frame_label(frame), base = rb_profile_frame_base_label(frame);
    VALUE classpath = rb_profile_frame_classpath(owner);
    VALUE method = rb_profile_frame_method_name(owner);
    if (!RB_TYPE_P(label, T_STRING)) label = rb_str_new_cstr("?");
    if (!RB_TYPE_P(base, T_STRING)) base = label;
    VALUE name = rb_str_new(RSTRING_PTR(label), prefix_length(StringValueCStr(label)));
    /* a body such as <main>, but no operator such as <= */
    bool body = RSTRING_LEN(base) > 1 && RSTRING_PTR(base)[0] == '<' && isalpha((unsigned char)RSTRING_PTR(base)[1]);
    bool anonymous = false;
    if (RB_TYPE_P(method, T_STRING) && RB_TYPE_P(classpath, T_STRING) && RSTRING_LEN(classpath) > 0 && !body) {
        bool singleton = RTEST(rb_profile_frame_singleton_method_p(owner));
        const char *path = StringValueCStr(classpath);
        if (starts_with(path, "#<")) {
            const char *address = strstr(path, ":0x");
            anonymous = address != NULL;
            if (anonymous) classpath = without_address(path, address, singleton);
        }
        rb_str_append(name, classpath);
        rb_str_cat_cstr(name, singleton ? "." : "#");
    }
    rb_str_append(name, base);
    if (anonymous || (body && RSTRING_LEN(name) > RSTRING_LEN(base))) {
        rb_str_catf(name, " (%s:%u)", pw_last_path_part(file), line);
    }
    return name;
}

/* The name of a C function, built as Ruby builds the name from a method entry. Calls no method of the program: a
 * class's own `inspect` or `name` may do anything. */
static VALUE
describe_called(VALUE frame)
{
    VALUE klass, path = Qnil;
    ID id;
    if (!state.called || !state.called(frame, &klass, &id)) return rb_str_new_cstr("?");
    VALUE name = rb_id2str(id);
    bool is_module = RB_TYPE_P(klass, T_CLASS) || RB_TYPE_P(klass, T_MODULE);
    VALUE attached = is_module ? pw_attached_object(klass) : Qundef;
    bool singleton = attached != Qundef;
    if (singleton && !RB_TYPE_P(attached, T_CLASS) && !RB_TYPE_P(attached, T_MODULE)) {
        path = c_function_owner(rb_any_to_s(attached), true); /* a singleton method of an object */
    }
    else if (is_module) {
        path = rb_class_path(singleton ? attached : klass);
        const char *text = StringValueCStr(path);
        if (starts_with(text, "#<") && strstr(text, ":0x")) path = without_address(text, strstr(text, ":0x"), false);
    }
    if (!RB_TYPE_P(path, T_STRING)) return RB_TYPE_P(name, T_STRING) ? name : rb_str_new_cstr("(C function)");
    return rb_sprintf("%" PRIsVALUE "%s%" PRIsVALUE, path, singleton ? "." : "#",
                      RB_TYPE_P(name, T_STRING) ? name : rb_str_new_cstr("?"));
}

VALUE
pw_frame_describe(VALUE argument)
{
    pw_frame_description *d = (pw_frame_description *)argument;
    d->name = d->path = Qnil;
    d->first_line = 0;
    d->ownerless = false;
    if (RB_SPECIAL_CONST_P(d->frame)) {
        d->owner = 0;
        static const char *const names[] = {"", "(marking)", "(sweeping)", "(stack cut here)", "(not sampled)",
                                            "(not traced)"};
        long which = FIX2LONG(d->frame);
        d->kind = which >= PW_FRAME_CALLED ? PW_KIND_C : which <= 2 ? PW_KIND_GC : PW_KIND_OURS;
        if (which >= PW_FRAME_CALLED) d->name = describe_called(d->frame);
        else d->name = rb_str_new_cstr(which >= 1 && which <= 5 ? names[which] : "?");
        return Qnil;
    }
    if (!pw_frame_valid(d->frame)) {
        pw_count(PW_REFUSED, 1);
        d->kind = PW_KIND_OURS;
        d->name = rb_str_new_cstr("(unreadable frame)");
        d->frame = d->owner = 0;
        return Qnil;
    }
    if (!owner_fits(d->owner, d->frame)) {
        d->ownerless = lacks_owner(d->owner, d->frame);
        d->owner = d->ownerless ? owner_of_others(d->frame) : 0;
    }
    VALUE path = rb_profile_frame_absolute_path(d->frame);
    if (!RB_TYPE_P(path, T_STRING)) path = rb_profile_frame_path(d->frame);
    long line = first_line_of(d->frame);
    if (line > 0) d->first_line = (uint32_t)line;
    bool c_function = !RB_TYPE_P(path, T_STRING) || rb_str_equal(path, rb_str_new_cstr("<cfunc>")) == Qtrue;
    if (c_function) {
        d->kind = PW_KIND_C;
        d->name = describe_c_function(d->frame);
        if (!RB_TYPE_P(d->name, T_STRING)) d->name = rb_str_new_cstr("(C function)");
        return Qnil;
    }
    d->kind = PW_KIND_RUBY;
    d->path = path;
    d->name = describe_ruby(d->frame, d->owner ? d->owner : d->frame, StringValueCStr(path), d->first_line);
    return Qnil;
}

static VALUE
describe_name(VALUE argument)
{
    pw_frame_describe(argument);
    return ((pw_frame_description *)argument)->name;
}

VALUE
pw_frame_name(VALUE frame, VALUE owner)
{
    pw_frame_description d = {.frame = frame, .owner = owner};
    VALUE name;
    pw_attempt(describe_name, (VALUE)&d, &name);
    return RB_TYPE_P(name, T_STRING) ? name : Qnil;
}

void pw_frame_names_of_calls(bool (*called)(VALUE frame, VALUE *klass, ID *name)) { state.called = called; }

void
pw_frame_names_init(void)
{
    state.environment = rb_const_get(rb_cObject, rb_intern("ENV"));
    rb_gc_register_mark_object(state.environment);
}

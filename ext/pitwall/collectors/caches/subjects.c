#include "collectors/caches/subjects.h"
#include "collectors/caches/operators.h"
#include "collectors/caches/weak_map.h"
#include "session/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 1 << 13, TRIES = 32 }; /* modules made elsewhere have no place */

static struct {
    VALUE places; /* an ObjectSpace::WeakMap: anonymous module => index in texts, singleton class => 0 */
    VALUE main;
    char *texts[MOST_PLACES]; /* "a.rb:3", by hash */
} state;

void
pw_subjects_init(void)
{
    static bool ready;
    if (!ready) {
        rb_gc_register_address(&state.places);
        state.main = rb_funcall(rb_const_get(rb_cObject, rb_intern("TOPLEVEL_BINDING")), rb_intern("receiver"), 0);
        rb_gc_register_mark_object(state.main);
        ready = true;
    }
    for (int i = 0; i < MOST_PLACES; i++) {
        free(state.texts[i]);
        state.texts[i] = NULL;
    }
    state.places = pw_weak_map_new();
}

void
pw_subjects_forget(void)
{
    state.places = Qnil;
}

void
pw_subject_add(pw_subject *subject, const char *bytes, size_t size)
{
    size_t room = PW_SUBJECT_BYTES - subject->size;
    if (size > room) size = room;
    memcpy(subject->text + subject->size, bytes, size);
    subject->size += size;
}

static void add_text(pw_subject *subject, const char *text) { pw_subject_add(subject, text, strlen(text)); }

static void
add_string(pw_subject *subject, VALUE string)
{
    if (RB_TYPE_P(string, T_STRING)) pw_subject_add(subject, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

void pw_subject_add_id(pw_subject *subject, ID name) { add_string(subject, rb_id2str(name)); }

/* A WeakMap belongs to the main Ractor. */
static bool may_remember(void) { return !NIL_P(state.places) && pw_in_main_ractor(); }

static void
remember(VALUE module, long number)
{
    if (may_remember()) pw_weak_map_set(state.places, module, number);
}

/* The index of the text; -1: no room. Not a Symbol: Ruby keeps each for ever, and refuses bytes that are not of its
 * encoding. */
static int
index_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (int i = 0; i < TRIES; i++) {
        int index = (int)((hash + (uint32_t)i) % MOST_PLACES);
        if (!state.texts[index]) state.texts[index] = strdup(text);
        if (!state.texts[index]) return -1;
        if (strcmp(state.texts[index], text) == 0) return index;
    }
    return -1;
}

void
pw_subject_made_here(VALUE module)
{
    const char *path = may_remember() ? rb_sourcefile() : NULL;
    if (!path) return;
    char text[PW_SUBJECT_BYTES];
    const char *slash = strrchr(path, '/');
    int n = snprintf(text, sizeof text, "%s:%d", slash ? slash + 1 : path, rb_sourceline());
    int index = n > 0 && (size_t)n < sizeof text ? index_of(text) : -1;
    if (index >= 0) remember(module, index);
}

bool
pw_subject_first_time(VALUE singleton)
{
    if (!may_remember() || pw_weak_map_get(state.places, singleton) >= 0) return false;
    remember(singleton, 0);
    return true;
}

static void
add_anonymous(pw_subject *subject, VALUE module)
{
    long place = may_remember() ? pw_weak_map_get(state.places, module) : -1;
    add_text(subject, RB_TYPE_P(module, T_MODULE) ? "(anonymous module" : "(anonymous class");
    if (place >= 0) {
        add_text(subject, " made at ");
        add_text(subject, state.texts[place]);
    }
    add_text(subject, ")");
}

static void
add_module(pw_subject *subject, VALUE module)
{
    VALUE attached = pw_object_of_singleton(module);
    if (attached != Qundef) {
        bool of_module = RB_TYPE_P(attached, T_CLASS) || RB_TYPE_P(attached, T_MODULE);
        add_text(subject, "singleton class of ");
        if (of_module) add_module(subject, attached);
        else pw_subject_of_object(subject, attached);
        return;
    }
    VALUE path = rb_mod_name(module);
    if (RB_TYPE_P(path, T_STRING)) add_string(subject, path);
    else add_anonymous(subject, module);
}

void
pw_subject_of_object(pw_subject *subject, VALUE object)
{
    if (RB_TYPE_P(object, T_CLASS) || RB_TYPE_P(object, T_MODULE)) {
        add_module(subject, object);
        return;
    }
    VALUE klass = rb_class_real(CLASS_OF(object));
    if (object == state.main) {
        add_text(subject, "main");
        return;
    }
    add_text(subject, "a ");
    if (klass) add_module(subject, klass);
}

void pw_subject_of_module(pw_subject *subject, VALUE module) { add_module(subject, module); }

void
pw_subject_of_constant(pw_subject *subject, VALUE module, ID name)
{
    if (module && module != rb_cObject) {
        add_module(subject, module);
        add_text(subject, "::");
    }
    pw_subject_add_id(subject, name);
}

void
pw_subject_of_method(pw_subject *subject, VALUE module, ID name)
{
    VALUE attached = pw_object_of_singleton(module);
    if (attached == Qundef) add_module(subject, module);
    else pw_subject_of_object(subject, attached);
    add_text(subject, attached == Qundef ? "#" : ".");
    pw_subject_add_id(subject, name);
}

void
pw_subject_of_pair(pw_subject *subject, VALUE mixin, VALUE target)
{
    add_module(subject, mixin);
    add_text(subject, " in ");
    pw_subject_of_object(subject, target);
}

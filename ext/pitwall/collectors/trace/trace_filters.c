#include "collectors/trace/trace_filters.h"
#include "output/frame_names.h"
#include "tools/settings.h"
#include "vm/stack_walk.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static struct {
    char home[4096];     /* folder of Pitwall's own files: their calls are hidden */
    VALUE filters; /* [paths, classes, methods] or nil */
    VALUE native_module;
} state = {.filters = Qnil};

static bool
among(VALUE list, bool (*fits)(const char *pattern, const char *text), const char *text)
{
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE pattern = rb_ary_entry(list, i);
        if (fits(RSTRING_PTR(pattern), text)) return true;
    }
    return false;
}

static bool glob_fits(const char *pattern, const char *path) { return fnmatch(pattern, path, 0) == 0; }
static bool same(const char *pattern, const char *text) { return strcmp(pattern, text) == 0; }

/* Does `name` begin with the class? "Shop::Cart#sum" fits Shop::Cart and Shop. */
static bool
class_fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    return strncmp(pattern, name, n) == 0 && (name[n] == '#' || name[n] == '.' || strncmp(name + n, "::", 2) == 0);
}

static const char *
without_block(const char *name)
{
    const char *from = name;
    if (strncmp(name, "block ", 6) != 0) return name;
    for (const char *at; (at = strstr(from, " in ")) != NULL;) from = at + 4;
    return from;
}

static void
decide(pw_call_key *key, const void *context)
{
    const pw_call_site *site = context;
    if (key->kind == PW_CALL_OTHER) return;
    bool ruby = key->b == 0;
    const char *path = "";
    if (ruby) {
        key->owner = site->owner ? site->owner : pw_walk_owner(site->ec, site->cfp);
        VALUE file = rb_profile_frame_absolute_path(key->a);
        if (!RB_TYPE_P(file, T_STRING)) file = rb_profile_frame_path(key->a);
        if (RB_TYPE_P(file, T_STRING)) path = RSTRING_PTR(file); /* no exception may be raised here */
        size_t n = strlen(state.home);
        if (n && strncmp(path, state.home, n) == 0 && (path[n] == '/' || strcmp(path + n, ".rb") == 0)) {
            key->hidden = true;
        }
    }
    else if (key->b != PW_CALL_MET && key->a == rb_singleton_class(state.native_module)) key->hidden = true;
    if (NIL_P(state.filters) || key->hidden) return;
    VALUE paths = rb_ary_entry(state.filters, 0), classes = rb_ary_entry(state.filters, 1),
                  methods = rb_ary_entry(state.filters, 2);
    if (ruby && RARRAY_LEN(paths) && !among(paths, glob_fits, path)) key->hidden = true;
    if (!RARRAY_LEN(classes) && !RARRAY_LEN(methods)) return;
    VALUE name = pw_frame_name(key->frame, key->owner);
    if (NIL_P(name)) return;
    const char *text = RSTRING_PTR(name);
    if (RARRAY_LEN(classes) && !among(classes, class_fits, without_block(text))) key->hidden = true;
    if (RARRAY_LEN(methods) && among(methods, same, text)) key->opens = true;
    RB_GC_GUARD(name);
}

static VALUE
words(VALUE settings, const char *name)
{
    VALUE value = pw_setting(settings, name);
    return NIL_P(value) ? rb_ary_new() : rb_str_split(value, "\n");
}

pw_call_rules
pw_trace_filters_read(VALUE settings)
{
    VALUE own = pw_setting(settings, "home");
    snprintf(state.home, sizeof state.home, "%s", NIL_P(own) ? "" : StringValueCStr(own));
    VALUE paths = words(settings, "path"), classes = words(settings, "class"), methods = words(settings, "only_under");
    bool any = RARRAY_LEN(paths) || RARRAY_LEN(classes) || RARRAY_LEN(methods);
    state.filters = any ? rb_ary_new_from_args(3, paths, classes, methods) : Qnil;
    return (pw_call_rules){
        .max_nodes = (uint32_t)pw_setting_number(settings, "nodes", 1000000),
                     .max_depth = (uint32_t)pw_setting_number(settings, "depth", 0),
        .only_under = RARRAY_LEN(methods) > 0, .decide = decide};
}

void
pw_trace_filters_init(VALUE native)
{
    state.native_module = native;
    rb_gc_register_address(&state.filters);
}

#include "collectors/caches/caches.h"
#include "collectors/caches/change_notes.h"
#include "collectors/caches/changes.h"
#include "collectors/caches/definitions.h"
#include "collectors/caches/line_watch.h"
#include "collectors/caches/operators.h"
#include "collectors/caches/own_hooks.h"
#include "collectors/caches/watched_methods.h"
#include "session/session.h"
#include "tools/quietly.h"
#include "tools/settings.h"
#include "vm/stack_walk.h"
#include <stdio.h>
#include <stdlib.h>

#if PW_LAYOUT_RUBY

static struct {
    bool active, blames;
    bool in_child; /* of a fork: the recording is the parent's, and is only taken down here */
    int lines; /* PW_LINES_… */
    const char *refusal;
} state;

/* "0", "1", or "quiet" (the default). */
static int
lines_of(VALUE settings)
{
    VALUE lines = pw_setting(settings, "lines");
    if (!RB_TYPE_P(lines, T_STRING) || RSTRING_LEN(lines) != 1) return PW_LINES_UNTIL_QUIET;
    return *RSTRING_PTR(lines) == '0' ? PW_LINES_NEVER : PW_LINES_ALWAYS;
}

/* -1: lines are compared from the start. */
static long
lines_after(VALUE settings)
{
    VALUE after = pw_setting(settings, "lines_after");
    return RB_TYPE_P(after, T_STRING) ? strtol(StringValueCStr(after), NULL, 10) : -1;
}

static VALUE
counters_in_ruby(void)
{
    VALUE collect = rb_const_get(rb_const_get(rb_cObject, rb_intern("Pitwall")), rb_intern("Collect"));
    return rb_const_get(collect, rb_intern("VMCounters"));
}

static VALUE
read_others(VALUE last)
{
    pw_changes_others(rb_funcall(counters_in_ruby(), rb_intern("all"), 0), RTEST(last));
    return Qnil;
}

/* Counters that can't be read now are left out. */
static void
others(bool last)
{
    pw_own_begin();
    pw_attempt(read_others, last ? Qtrue : Qfalse, NULL);
    pw_own_end();
}

static VALUE
prepare(VALUE settings)
{
    state.blames = pw_setting_is_on(settings, "blame", true);
    state.lines = lines_of(settings);
    pw_vm_counters_find(counters_in_ruby());
    if (!state.blames) return Qnil;
    pw_operators_init();
    pw_change_notes_init();
    pw_subjects_init();
    pw_own_hooks_start();
    pw_definitions_start(pw_setting_is_on(settings, "definitions", false));
    state.refusal = pw_watched_methods_start();
    return Qnil;
}

/* After a refused start neither `stop` nor `forget` is called. */
static void
undo(void)
{
    pw_watched_methods_stop();
    pw_own_hooks_stop();
    pw_definitions_forget(true);
    pw_subjects_forget();
    state.active = false;
}

static const char *
start(VALUE settings)
{
    static char text[160];
    if (pw_walk_refusal()) {
        snprintf(text, sizeof text, "cannot watch caches: %s", pw_walk_refusal());
        return text;
    }
    state.active = true;
    state.in_child = false;
    state.refusal = NULL;
    bool prepared = pw_attempt(prepare, settings, NULL);
    if (!prepared) state.refusal = "cannot watch caches: this Ruby does not have what is needed";
    if (state.refusal) {
        undo();
        return state.refusal;
    }
    if (state.blames) pw_line_watch_start(state.lines, lines_after(settings));
    others(false); /* after the hooks were set, which discards compiled code */
    VALUE home = pw_setting(settings, "home");
    pw_changes_begin(RB_TYPE_P(home, T_STRING) ? RSTRING_PTR(home) : "");
    return NULL;
}

static void
stop(void)
{
    if (!state.active) return;
    pw_changes_end();
    if (!state.in_child) others(true);
    if (!state.blames) return;
    pw_line_watch_stop();
    pw_watched_methods_stop();
    pw_own_hooks_stop();
    if (!state.in_child && !pw_current.before_exec) pw_definitions_measure();
}

static void in_child(void) { state.in_child = true; }

static void
forget(bool frees)
{
    state.active = false;
    pw_changes_forget(frees);
    pw_definitions_forget(frees);
    pw_subjects_forget();
    pw_calls_forget();
}

static void write_rows(bool last) { pw_changes_write_rows(); }

static void
write_end(bool last)
{
    pw_changes_write_sums(!state.blames ? "counters" : state.lines == PW_LINES_NEVER ? "methods" : "lines",
                          pw_line_watch_rests());
    if (last) pw_definitions_write();
}

static void check(void) { if (state.active) pw_line_watch_check(); }
static void work(void) { if (state.active) pw_line_watch_work(); }

static void
init(VALUE native)
{
    pw_changes_init();
    pw_line_watch_init();
}

#else /* unknown layout */

static const char *start(VALUE settings) { return "cannot watch caches: " PW_LAYOUT_UNKNOWN; }
static void stop(void) {}
static void in_child(void) {}
static void forget(bool frees) {}
static void write_rows(bool last) {}
static void write_end(bool last) {}
static void check(void) {}
static void work(void) {}
static void init(VALUE native) { pw_changes_init(); }

#endif

const pw_module pw_caches = {
    .name = "caches", .init = init, .start = start, .stop = stop, .forget = forget, .in_child = in_child,
    .write_rows = write_rows, .write_end = write_end, .check = check, .work = work, .fills_ring = true};

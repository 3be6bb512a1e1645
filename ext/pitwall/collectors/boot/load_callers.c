#include "collectors/boot/load_callers.h"
#include "vm/compiled_code.h"
#include "vm/stack_walk.h"
#include "vm/vm_layout.h"
#include <ruby/debug.h>
#include <string.h>

enum { LOOK = 24 };

/* The standard library's: ".../ruby/3.4.0/monitor.rb", or ".../ruby/monitor.rb" where a system names no version. */
static bool
is_rubys_monitor(const char *path)
{
    const char *folder = strstr(path, "/ruby/"), *next;
    while (folder && (next = strstr(folder + 1, "/ruby/"))) folder = next;
    if (!folder) return false;
    folder += sizeof "/ruby/" - 1;
    folder += strspn(folder, "0123456789.+");
    return strcmp(folder, *folder == '/' ? "/monitor.rb" : "monitor.rb") == 0;
}

/* Files that stand between `require` in the program and Ruby's own. */
static bool
stands_between(const char *path)
{
    static const char *const parts[] = {
        "<internal:", "/rubygems/core_ext/", "/bootsnap/", "/lib/zeitwerk/", "/bundled_gems.rb",
        "/active_support/dependencies", "/active_support/inflector/", "/string/inflections.rb", "/pitwall/collect/"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) if (strstr(path, parts[i])) return true;
    return is_rubys_monitor(path);
}

VALUE
pw_load_asked_by(int *line)
{
    VALUE frames[LOOK];
    int lines[LOOK], n = rb_profile_frames(0, LOOK, frames, lines);
    for (int i = 0; i < n; i++) {
        if (lines[i] <= 0) continue;
        VALUE path = rb_profile_frame_path(frames[i]);
        if (!RB_TYPE_P(path, T_STRING) || stands_between(RSTRING_PTR(path))) continue;
        *line = lines[i];
        return path;
    }
    *line = 0;
    return Qnil;
}

static bool zjit_runs;

void pw_load_callers_start(void) { zjit_runs = pw_jit_runs("ZJIT"); }

static bool is_of_c(const VALUE *cfp) { return !cfp[PW_CFP_ISEQ] || !cfp[PW_CFP_PC]; }

/* Is it a C method that looks up a constant by its name? */
static bool
looks_up_constants(const VALUE *ec, const VALUE *cfp)
{
    static const char *const names[] = {"const_get", "path2class" /* of psych */};
    pw_frame_seen seen;
    if (!pw_walk_look(ec, cfp, &seen) || !seen.frame || pw_frame_is_iseq(seen.frame)) return false;
    VALUE name = rb_profile_frame_method_name(seen.frame);
    if (!RB_TYPE_P(name, T_STRING)) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) if (!strcmp(RSTRING_PTR(name), names[i])) return true;
    return false;
}

/* "<internal:array>", but not RubyGems' "<internal:/usr/lib/…>" */
static bool is_of_ruby(const char *path) { return strncmp(path, "<internal:", 10) == 0 && !strchr(path, '/'); }

/* Before Ruby code calls a C function, it pushes the receiver and the arguments. So these words lie between the end of
 * the caller's stack and the first word of the called frame. */
static bool
has_arguments(const VALUE *caller, const VALUE *called)
{
    const VALUE *first_word = (const VALUE *)called[PW_CFP_EP] + PW_EP_ME_CREF;
    return first_word > (const VALUE *)caller[PW_CFP_SP];
}

/* Did C code that has no frame of its own call the frame `called`? If `called` runs a Ruby method, it then has the flag
 * FINISH. ZJIT sets FINISH for calls from Ruby code, too, so with ZJIT the answer is false. */
static bool
is_called_from_c(const VALUE *caller, const VALUE *called)
{
    if (is_of_c(called)) return !has_arguments(caller, called);
    VALUE path = rb_profile_frame_path(called[PW_CFP_ISEQ]), flags = ((const VALUE *)called[PW_CFP_EP])[PW_EP_FLAGS];
    if (zjit_runs || !RB_TYPE_P(path, T_STRING) || is_of_ruby(RSTRING_PTR(path))) return false;
    return (flags & PW_FRAME_FINISH) && pw_frame_is_method_or_block(flags);
}

/* For an autoloaded constant, Ruby calls `require` from C code. Between this `require` and the program's code is no
 * frame, or the frame of a method that looks up the constant. */
bool
pw_load_is_autoload(void)
{
    const VALUE *ec = pw_walk_context_of(rb_thread_current());
    if (!ec) return false;
    const VALUE *cfp = (const VALUE *)ec[PW_EC_CFP], *end = (const VALUE *)ec[PW_EC_STACK] + ec[PW_EC_STACK_WORDS];
    const VALUE *called = NULL;
    for (int i = 0; i < LOOK && cfp + PW_CFP_WORDS < end; i++, called = cfp, cfp += PW_CFP_WORDS) {
        if (is_of_c(cfp)) {
            if (looks_up_constants(ec, cfp)) return true;
            continue;
        }
        VALUE path = rb_profile_frame_path(cfp[PW_CFP_ISEQ]);
        if (!RB_TYPE_P(path, T_STRING)) return false;
        bool is_marshal = strcmp(RSTRING_PTR(path), "<internal:marshal>") == 0;
        if (!is_marshal && stands_between(RSTRING_PTR(path))) continue;
        return called && is_called_from_c(cfp, called);
    }
    return false;
}

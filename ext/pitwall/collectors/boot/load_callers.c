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

static bool
is_const_get(const VALUE *ec, const VALUE *cfp)
{
    pw_frame_seen seen;
    if (!pw_walk_look(ec, cfp, &seen) || !seen.frame || pw_frame_is_iseq(seen.frame)) return false;
    VALUE name = rb_profile_frame_method_name(seen.frame);
    return RB_TYPE_P(name, T_STRING) && strcmp(RSTRING_PTR(name), "const_get") == 0;
}

static bool is_of_c(const VALUE *cfp) { return !cfp[PW_CFP_ISEQ] || !cfp[PW_CFP_PC]; }

/* Ruby code that calls a C function has pushed the receiver and the arguments. They lie between the two frames. */
static bool
has_arguments(const VALUE *caller, const VALUE *called)
{
    const VALUE *first_word = (const VALUE *)called[PW_CFP_EP] + PW_EP_ME_CREF;
    return first_word > (const VALUE *)caller[PW_CFP_SP];
}

/* "<internal:array>", but not RubyGems' "<internal:/usr/lib/…>" */
static bool is_of_ruby(const char *path) { return strncmp(path, "<internal:", 10) == 0 && !strchr(path, '/'); }

/* Ruby calls `require` for an autoloaded constant from C code that has no frame of its own, or that of
 * Module#const_get. If this `require` is Ruby code, such as RubyGems', its frame has the flag FINISH. (ZJIT sets that
 * flag for other calls, too. With ZJIT such a load counts as a require.) If this `require` is a C function, its caller
 * has pushed no arguments. */
bool
pw_load_is_autoload(void)
{
    const VALUE *ec = pw_walk_context_of(rb_thread_current());
    if (!ec) return false;
    const VALUE *cfp = (const VALUE *)ec[PW_EC_CFP], *end = (const VALUE *)ec[PW_EC_STACK] + ec[PW_EC_STACK_WORDS];
    const VALUE *called = NULL;
    bool by_c = false;
    for (int i = 0; i < LOOK && cfp + PW_CFP_WORDS < end; i++, called = cfp, cfp += PW_CFP_WORDS) {
        if (is_of_c(cfp)) {
            if (is_const_get(ec, cfp)) return true;
            by_c = false;
            continue;
        }
        VALUE path = rb_profile_frame_path(cfp[PW_CFP_ISEQ]);
        if (!RB_TYPE_P(path, T_STRING)) return false;
        if (called && is_of_c(called)) by_c = !has_arguments(cfp, called);
        if (!stands_between(RSTRING_PTR(path))) return by_c;
        VALUE flags = ((const VALUE *)cfp[PW_CFP_EP])[PW_EP_FLAGS];
        by_c = (flags & PW_FRAME_FINISH) && pw_frame_is_method_or_block(flags) && !is_of_ruby(RSTRING_PTR(path)) &&
            !pw_jit_runs("ZJIT");
    }
    return false;
}

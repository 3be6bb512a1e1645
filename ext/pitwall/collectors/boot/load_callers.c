#include "collectors/boot/load_callers.h"
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

/* Ruby calls `require` for an autoloaded constant from C code that has no frame of its own. So the method that Ruby
 * called has the flag FINISH, and the next frame is of Ruby code. Where `require` is Ruby's own C method, its frame
 * lacks the flag, and the load counts as a require. An autoload by Module#const_get has the frame of that method. */
bool
pw_load_is_autoload(void)
{
    const VALUE *ec = pw_walk_context_of(rb_thread_current());
    if (!ec) return false;
    const VALUE *cfp = (const VALUE *)ec[PW_EC_CFP], *end = (const VALUE *)ec[PW_EC_STACK] + ec[PW_EC_STACK_WORDS];
    bool by_c = false;
    for (int i = 0; i < LOOK && cfp + PW_CFP_WORDS < end; i++, cfp += PW_CFP_WORDS) {
        const VALUE *ep = (const VALUE *)cfp[PW_CFP_EP];
        if (!cfp[PW_CFP_ISEQ] || !cfp[PW_CFP_PC]) {
            if (is_const_get(ec, cfp)) return true;
            if (i) by_c = false;
            continue;
        }
        VALUE path = rb_profile_frame_path(cfp[PW_CFP_ISEQ]);
        if (!RB_TYPE_P(path, T_STRING)) return false;
        if (!stands_between(RSTRING_PTR(path))) return by_c;
        by_c = (ep[PW_EP_FLAGS] & PW_FRAME_FINISH) && pw_frame_is_method_or_block(ep[PW_EP_FLAGS]);
    }
    return false;
}

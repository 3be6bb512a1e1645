#include "collectors/boot/boot.h"
#include "collectors/boot/code_caches.h"
#include "collectors/boot/load_methods.h"
#include "collectors/boot/loads.h"
#include "collectors/boot/repeats.h"
#include "collectors/boot/spans.h"
#include "collectors/boot/uses.h"
#include "tools/quietly.h"
#include "tools/settings.h"
#include "vm/stack_walk.h"
#include "vm/vm_layout.h"
#include <stdio.h>

#if PW_LAYOUT_RUBY

static const char *refusal;

static VALUE
prepare(VALUE settings)
{
    refusal = pw_load_methods_start();
    if (!refusal) pw_uses_start(settings);
    return Qnil;
}

static const char *
start(VALUE settings)
{
    static char text[160];
    if (pw_walk_refusal()) {
        snprintf(text, sizeof text, "cannot watch what is loaded: %s", pw_walk_refusal());
        return text;
    }
    refusal = NULL;
    if (!pw_attempt(prepare, settings, NULL)) refusal = "cannot watch what is loaded: this Ruby does not have what is needed";
    if (refusal) return refusal;
    pw_repeats_start();
    pw_loads_start((int64_t)pw_setting_number(settings, "began_ns", 0));
    return NULL;
}

static void
stop(void)
{
    pw_uses_stop();
    pw_loads_stop();
    pw_load_methods_stop();
}

#else /* unknown layout */

static const char *start(VALUE settings) { return "cannot watch what is loaded: " PW_LAYOUT_UNKNOWN; }
static void stop(void) {}

#endif

static void
init(VALUE native)
{
    pw_loads_init();
    pw_repeats_init();
    pw_uses_init();
    pw_spans_init(native);
    pw_code_caches_init(native);
}

static void
write_rows(bool last)
{
    pw_loads_write_rows();
    pw_repeats_write_rows();
    pw_uses_write_rows();
}

static void
forget(bool frees)
{
    pw_loads_forget(frees);
    pw_repeats_forget(frees);
    pw_uses_forget(frees);
}

static void
in_child(void)
{
    pw_loads_in_child();
    pw_uses_in_child();
}

static void write_end(bool last) { pw_loads_write_sums(pw_uses_recorded()); }

const pw_module pw_boot = {
    .name = "boot", .init = init, .start = start, .stop = stop, .forget = forget,
    .in_child = in_child, .mark = pw_loads_mark, .write_rows = write_rows, .write_end = write_end,
    .work = pw_loads_booted, .fills_ring = true};

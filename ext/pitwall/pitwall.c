/* Pitwall's extension. Reading order:
 *
 *   vm_compat.h  what differs between Rubies          clock.h      the one clock
 *   ticker.h     when to sample                       capture.h    what a sample is
 *   threads.h    who is sampled                       ring.h       from handlers to the drain
 *   vm_layout.h  how the VM's stack lies in memory    stack_walk.h how it is read
 *   signal_ticker.c, safepoint_ticker.c               gc.c, gc_log.c, thread_events.c
 *   outside_ticker.c                                  peek.h       reading what may be gone
 *   gvl_watch.c  thread events for 3.1                c_waits.h    C code that waits with the GVL
 *   stand_ins.h  functions in place of the C library's
 *   drain.c      ring -> rows -> chunks               intern.h     stacks -> small numbers
 *   naming.c    numbers -> names                     writer.h, compress.h   chunks -> file
 *   sampler.c    start, stop, fork                    endings.c    exec, exit!
 *                                                     collector.h  what records beside samples
 *   sites.h      where objects come from              living.h     a word for each that lives
 *   allocations.c  objects, their ages and ends       duplicates.h which strings are equal
 *   gc_log.h     a row for each collection            growth.h     what lives, over time
 *                                                     holders.h    who keeps it alive
 *   labels.h     what the program says its work is for
 *   calls.h      the tree of exact calls              trace_clock.h, trace_probe.h   what they cost
 *   syscall_dispatch.h  seeing system calls           syscall_table.h, syscall_after.h   which; what they came to
 *   syscalls.h   their rows
 *   trace_filters.h  which calls                      tracer.h, trace_writer.h   their hook; their chunks
 */
#include "output/compress.h"
#include "vm/gvl_watch.h"
#include "sampler.h"
#include "vm/walk_tests.h"

/* lz4_decompress(bytes, raw_size) -> String. For the reader. Raises ArgumentError on anything malformed. */
static VALUE
native_lz4_decompress(VALUE self, VALUE packed, VALUE raw_size)
{
    StringValue(packed);
    size_t raw = NUM2SIZET(raw_size);
    if (raw > (16u << 20)) rb_raise(rb_eArgError, "block too large");
    VALUE out = rb_str_new(NULL, (long)raw);
    ssize_t n = pw_lz4_decompress((const uint8_t *)RSTRING_PTR(packed), (size_t)RSTRING_LEN(packed),
                                  (uint8_t *)RSTRING_PTR(out), raw);
    if (n < 0 || (size_t)n != raw) rb_raise(rb_eArgError, "malformed block");
    RB_GC_GUARD(packed);
    return out;
}

/* thread_states?(mode): is it known in recordings of that mode who has the GVL? */
static VALUE
native_thread_states_p(VALUE self, VALUE mode)
{
    if (PW_THREAD_EVENTS) return Qtrue;
    const pw_ticker *ticker = pw_ticker_named(mode);
    return ticker && pw_looks_at_waiting(ticker) && pw_gvl_watch_install() ? Qtrue : Qfalse;
}

__attribute__((visibility("default"))) void
Init_pitwall(void)
{
#ifdef HAVE_RB_EXT_RACTOR_SAFE
    rb_ext_ractor_safe(true);
#endif
    VALUE native = rb_define_module_under(rb_define_module("Pitwall"), "Native");
    rb_define_singleton_method(native, "lz4_decompress", native_lz4_decompress, 2);
    rb_define_singleton_method(native, "thread_states?", native_thread_states_p, 1);
    pw_walk_tests_init(native);
    Init_pitwall_sampler(native);
}

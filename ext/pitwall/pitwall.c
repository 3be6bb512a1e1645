/* Pitwall's extension. A file knows files of its own folder and of the folders below it, never of one above
 * (test/native/layers_test.rb). Reading order, from bottom to top:
 *
 *   tools/        clock.h, tick_clock.h, buffer.h      the clocks; a growing buffer
 *                 quiet_thread.h                       threads of our own
 *                 raw_syscall.h, readable.h            system calls that nobody sees; whether an address may be read
 *                 stand_ins.h, elf_object.h            our functions in place of the C library's
 *                 settings.h                           a collector's settings
 *   vm/           vm_compat.h, vm_known.h              what differs between Rubies; which of them are known
 *                 vm_layout.h, vm_stack.h              how the VM's stack lies in memory
 *                 stack_walk.h                         reading the own stack
 *                 outside_walk.c, peek.h, reader_lock.h  reading another thread's stack
 *                 walk_tests.h                         the proof that both are right
 *                 known_frames.h, valid_frames.h       which captured words are frames
 *                 gvl_watch.h                          thread events for 3.1
 *   session/      session.h, counters.h                the state of a recording; what it counts
 *                 threads.h                            who is sampled
 *                 ticker.h                             when to sample
 *                 modules.h, change.h                  who takes part; beginning and ending one at a time
 *   output/       ring.h, records.h                    from handlers to the drain
 *                 drain.h, rows.h, thread_rows.h, chunks.h  ring -> rows -> chunks
 *                 intern.h                             stacks -> small numbers
 *                 naming.h, frame_names.h              numbers -> names
 *                 writer.h, compress.h                 chunks -> file
 *   sampling/     capture.h                            what a sample is
 *                 registry.h, thread_events.h          threads come, go, get and release the GVL
 *                 signal_ticker.h, safepoint_ticker.h, outside_ticker.h, tickers.h
 *                 held_signal.h, waiting.h, c_waits.h  threads that wait
 *                 gc.h, gc_log.h                       collections as frames; a row for each
 *                 labels.h, queries.h, libraries.h     what the program says its work is for
 *   collectors/   allocations/  objects, their sites, ages, ends, holders
 *                 trace/        exact calls, what they cost
 *                 syscalls/     file-system calls
 *   recording.h   start, stop, fork                    endings.h    exec, exit!
 *
 * Tags, one line above or beside a function:
 *
 *   async-signal-safe    may run in a signal handler: allocates nothing, takes no lock, raises nothing
 *   needs GVL            the calling thread has the GVL
 *   holds session lock   the caller holds pw_current.lock; with a field: it is read and written with the lock held
 *   holds reader lock    the same for pw_reader_lock
 *   holds list lock      the same for the signal ticker's list of resting threads
 */
#include "endings.h"
#include "output/compress.h"
#include "recording.h"
#include "sampling/signal_ticker.h"
#include "sampling/tickers.h"
#include "vm/gvl_watch.h"
#include "vm/walk_tests.h"
#include <errno.h>
#include <sched.h>

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
    return ticker && ticker->looks_at_waiting && pw_gvl_watch_install() ? Qtrue : Qfalse;
}

/* allowed_cores -> how many the calling thread, and those it starts, may run on; nil: nobody says */
static VALUE
native_allowed_cores(VALUE self)
{
#ifdef __linux__
    for (int most = 1024; most <= 1 << 16; most *= 2) {
        cpu_set_t *set = CPU_ALLOC(most);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE(most);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : -errno;
        CPU_FREE(set);
        if (count > 0) return INT2NUM(count);
        if (count != -EINVAL) break; /* else there are more than there was room for */
    }
#endif
    return Qnil;
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
    pw_recording_init(native);
    pw_signal_ticker_init(native);
    pw_endings_init(native);
    rb_define_singleton_method(native, "allowed_cores", native_allowed_cores, 0);
}

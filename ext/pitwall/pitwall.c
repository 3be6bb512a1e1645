/* Pitwall's extension. A file includes files of its own folder and of the folders below, never of a folder above
 * (test/native/layers_test.rb). Suggested reading order, from the lowest folder to the highest:
 *
 *   tools/        clock.h, tick_clock.h, buffer.h      the clocks; a growing buffer
 *                 quiet_thread.h                       Pitwall's own threads
 *                 raw_syscall.h, readable.h            unrecorded system calls; whether an address may be read
 *                 stand_ins.h, elf_object.h            Pitwall's functions in place of the C library's
 *                 settings.h                           a collector's settings
 *   native/       unwind.h, objects.h                  the native stack; the loaded shared objects
 *                 symbols.h, elf_file.h                names of functions
 *                 cfi_table.h, cfi_parse.h             the rules of .eh_frame, for handlers
 *                 rule_walk.h, ruleless_code.h         from a frame to its caller, with and without a rule
 *                 registers.h, stack_words.h           the machine's registers; reading the stack
 *                 interpreter.h                        where Ruby's loop is
 *   vm/           vm_compat.h, vm_known.h              differences between Rubies; Rubies whose layout is known
 *                 vm_layout.h, vm_stack.h              the memory layout of the VM's stack
 *                 stack_walk.h                         reading the calling thread's stack
 *                 outside_walk.c, peek.h, reader_lock.h  reading another thread's stack
 *                 walk_tests.h                         checks that both read correctly
 *                 known_frames.h, valid_frames.h       which captured words are frame objects
 *                 gvl_watch.h                          thread events for 3.1
 *   session/      session.h, counters.h                the state and the counters of a recording
 *                 threads.h                            the sampled threads
 *                 ticker.h                             when to sample
 *                 modules.h, change.h                  the list of modules; one start or stop at a time
 *   output/       ring.h, records.h                    from handlers to the drain
 *                 drain.h, rows.h, thread_rows.h, chunks.h  ring -> rows -> chunks
 *                 intern.h                             stacks -> small numbers
 *                 naming.h, frame_names.h              numbers -> names
 *                 writer.h, compress.h                 chunks -> file
 *   sampling/     capture.h                            taking a sample
 *                 native_stack.h, join.h               Ruby frames and native frames in one stack
 *                 registry.h, thread_events.h          threads start, end, acquire and release the GVL
 *                 signal_ticker.h, safepoint_ticker.h, outside_ticker.h, tickers.h
 *                 held_signal.h, waiting.h, c_waits.h  threads that wait
 *                 gc.h, gc_log.h                       collections as frames; one row a collection
 *                 labels.h, queries.h, libraries.h     labels, queries and loaded libraries
 *   collectors/   allocations/  objects: their sites, ages, ends and holders
 *                 trace/        exact calls, with the cost of tracing them
 *                 syscalls/     file-system calls
 *                 caches/       changes that empty the VM's caches
 *                 boot/         what the program loads
 *   recording.h   start, stop, fork                    endings.h    exec, exit!
 *
 * Tags, one line above or beside a function:
 *
 *   async-signal-safe    may run in a signal handler: allocates nothing, takes no lock, raises nothing
 *   needs GVL            the calling thread has the GVL
 *   holds session lock   the caller holds pw_current.lock; on a field: read and written with the lock held
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

/* lz4_decompress(bytes, raw_size) -> String. Used to read recordings. Raises ArgumentError on a malformed block. */
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

/* thread_states?(mode) -> whether a recording of that mode knows which thread has the GVL */
static VALUE
native_thread_states_p(VALUE self, VALUE mode)
{
    if (PW_THREAD_EVENTS) return Qtrue;
    const pw_ticker *ticker = pw_ticker_named(mode);
    return ticker && ticker->looks_at_waiting && pw_gvl_watch_install() ? Qtrue : Qfalse;
}

/* allowed_cores -> number of cores that the calling thread, and threads it starts, may run on; nil: unknown */
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
        if (count != -EINVAL) break; /* EINVAL: the machine has more cores than the set has bits */
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

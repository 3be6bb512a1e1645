/* All constants of the layout of Ruby's stack. The walk in the thread and the reader from outside both use them, but
 * only after the self-test (walk_tests.c) has passed for the running Ruby. test/native/layout_test.rb compiles each
 * column with that Ruby's private headers.
 *
 *                  where Ruby's source says it
 * thread, frames   vm_core.h: rb_thread_t, rb_execution_context_t, rb_control_frame_t
 *                  (frames up to 3.2 have a further field, __bp__)
 * 3.1's GVL        ractor_core.h: struct rb_ractor_struct; thread_pthread.h: rb_global_vm_lock_t
 * environments     vm_core.h: VM_FRAME_MAGIC_…, VM_FRAME_FLAG_…, VM_ENV_…
 * objects          internal/imemo.h: enum imemo_type, struct vm_svar
 * code             vm_core.h: struct rb_iseq_struct, struct rb_iseq_constant_body
 * methods          method.h: rb_callable_method_entry_t, rb_method_definition_t, rb_method_type_t
 * call sites       vm_callinfo.h: struct rb_call_data, struct rb_callcache. A site is an operand of its instruction.
 * listed frames    vm_backtrace.c: rb_profile_frames. No header has PW_ROOT_FRAMES and PW_RUBY_FRAME_HAS_PC. 3.2's
 *                  values come from its source of about the release; no 3.2 was run.
 *
 * To support a new Ruby, add a column here, its number in PW_HAS_COLUMN and the text beside it (vm_known.h), and its
 * headers in layout_test.rb. */
#ifndef PITWALL_VM_LAYOUT_H
#define PITWALL_VM_LAYOUT_H

#include "vm/vm_known.h"
#include <stdbool.h>
#include <stdint.h>

/* One column a Ruby. On an unknown Ruby the values are not used. */
#if PW_LAYOUT_RUBY == 31
# define PW_COLUMN(r31, r32, r33, r34, r40) r31
#elif PW_LAYOUT_RUBY == 32
# define PW_COLUMN(r31, r32, r33, r34, r40) r32
#elif PW_LAYOUT_RUBY == 33
# define PW_COLUMN(r31, r32, r33, r34, r40) r33
#elif PW_LAYOUT_RUBY == 34
# define PW_COLUMN(r31, r32, r33, r34, r40) r34
#else
# define PW_COLUMN(r31, r32, r33, r34, r40) r40
#endif

enum {
    /* rb_thread_t, in bytes */
    PW_THREAD_SELF = 16,
    PW_THREAD_EC = PW_COLUMN(40, 48, 48, 48, 48),
    /* rb_execution_context_t, in words */
    PW_EC_STACK = 0, PW_EC_STACK_WORDS = 1, PW_EC_CFP = 2, PW_EC_WORDS = 3,
    /* 3.1's GVL (gvl_watch.c), in bytes: offsets of a context's thread, of a thread's Ractor, and of a Ractor's GVL
     * owner and GVL lock */
    PW_EC_THREAD_31 = 48, PW_THREAD_RACTOR_31 = 24, PW_RACTOR_OWNER_31 = 336, PW_RACTOR_LOCK_31 = 344,
    /* rb_control_frame_t, in words; the stack's end is the root, and each call pushes a frame at a lower address */
    PW_CFP_PC = 0, PW_CFP_SP = 1, PW_CFP_ISEQ = 2, PW_CFP_EP = 4,
    PW_CFP_WORDS = PW_COLUMN(8, 8, 7, 7, 7),
    /* dummy frames at the root, to skip; 3.1's rb_profile_frames lists the main thread's, so none is skipped there */
    PW_ROOT_FRAMES = PW_COLUMN(0, 1, 1, 1, 1),
    /* 1: rb_profile_frames skips Ruby frames without a pc, such as the frame under which an extension's Init
     * function runs */
    PW_RUBY_FRAME_HAS_PC = PW_COLUMN(0, 1, 1, 1, 1),
    /* an environment, in words from ep */
    PW_EP_ME_CREF = -2, PW_EP_SPECVAL = -1, PW_EP_FLAGS = 0,
    /* objects, in words */
    PW_ISEQ_BODY = 2, PW_BODY_ENCODED = 1, PW_SVAR_CREF_OR_ME = 1, PW_ME_DEF = 2,
    PW_DEF_CODE = 1, /* of a method written in Ruby; checked by what it says */
    PW_DEF_FUNCTION = 1, PW_DEF_ARGC = 3, /* of a C function; argc is an int */
    PW_DEF_ALIASED = 1, /* of an alias: the method entry */
    PW_CFP_SELF = 3,
    PW_BODY_CALL_DATA = PW_COLUMN(24, 23, 23, 23, 24), PW_BODY_WORDS = 33,
    PW_BODY_SIZE = 1, PW_BODY_CALL_DATA_COUNT = PW_COLUMN(62, 63, 63, 63, 65), /* in ints */
    PW_CALL_DATA_CACHE = 1, PW_CALL_DATA_WORDS = 2, PW_CACHE_METHOD = 2
};

#define PW_CFP_BYTES (PW_CFP_WORDS * sizeof(VALUE))

/* ep[0]: a tag bit that no object pointer has, flags, and a magic number in bits 16 to 30. */
enum {
    PW_ENV_LOCAL = 0x2, PW_FRAME_FINISH = 0x20, PW_FRAME_C = 0x80, PW_MAGIC_OF_C_METHOD = 0x5555,
    PW_MAGIC_OF_DUMMY = 0x7999
};

/* Whether a frame of C code is a method's. */
static inline bool
pw_frame_is_call_of_c(const VALUE *ep)
{
    return (ep[PW_EP_FLAGS] >> 16 & 0x7fff) == PW_MAGIC_OF_C_METHOD;
}

/* Whether a frame of Ruby code is a method's or a block's. */
static inline bool
pw_frame_is_method_or_block(VALUE flags)
{
    unsigned magic = flags >> 16 & 0x7fff;
    return magic == 0x1111 || magic == 0x2222;
}

static inline bool
pw_env_flags_plausible(VALUE flags)
{
    unsigned magic = (unsigned)(flags >> 16);
    bool repeated = magic == 0x7888 || magic == 0x7999 ||
                    (magic % 0x1111 == 0 && magic / 0x1111 >= 1 && magic / 0x1111 <= 7);
    return (flags & 1) && flags >> 31 == 0 && repeated;
}

enum {
    PW_IMEMO_CREF = 1, PW_IMEMO_SVAR = 2, PW_IMEMO_IFUNC = 4, PW_IMEMO_MENT = 6, PW_IMEMO_ISEQ = 7,
    PW_IMEMO_CALLCACHE = PW_COLUMN(12, 12, 12, 12, 11)
};
enum { PW_METHOD_ISEQ = 0, PW_METHOD_CFUNC = 1, PW_METHOD_ALIAS = 6 };

/* The imemo sub-type in an object's first word, or -1. */
static inline int
pw_imemo_of_flags(VALUE flags)
{
    return (flags & RUBY_T_MASK) == RUBY_T_IMEMO ? (int)((flags >> RUBY_FL_USHIFT) & 0xf) : -1;
}

static inline int pw_method_type_of(VALUE definition_word) { return (int)(definition_word & 0xf); }

/* The low bits of a parent environment's address hold other information. */
static inline const VALUE *pw_parent_ep(VALUE specval) { return (const VALUE *)(specval & ~(VALUE)3); }

/* The argument of a hook added with RUBY_EVENT_HOOK_FLAG_RAW_ARG (rb_trace_arg_t, vm_core.h and vm_trace.c). `cfp`
 * is the frame on top. Before a C function's frame is pushed, and after it was popped, `cfp` is the caller's frame. */
typedef struct {
    uint32_t event;
    const VALUE *ec, *cfp;
    VALUE self;
    ID id, called_id;
    VALUE klass, data;
} pw_trace_arg;

/* Ruby 3.4 and newer report some methods written in Ruby as calls of C functions. */
#define PW_TOLD_AS_C (PW_LAYOUT_RUBY >= 34)

/* A method entry, in words: the name that was called, and the class that owns the method. */
enum { PW_ME_CALLED_ID = 3, PW_ME_OWNER = 4 };

#endif

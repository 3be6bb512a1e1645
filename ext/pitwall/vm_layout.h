/* How the VM's stack lies in memory: the only place that knows. Nothing here reads anything, so that a walk of the own
 * stack and a reader from outside can share it. What it says is used only after the self-test of stack_walk.c has held
 * for the running Ruby.
 *
 *                        3.1                        3.3                   3.4
 * source           vm_core.h, iseq.h,         vm_core.h, iseq.h,    vm_core.h, iseq.h, internal/imemo.h, method.h;
 *                  as installed in            method.h              the same words as 3.3
 *                  rb_mjit_min_header-3.1.2.h
 * rb_thread_t      lt_node, self, ractor,     lt_node, self, ractor, vm, nt, ec
 *                  vm, ec
 * control frame    8 words (__bp__)           7 words
 * the rest         vm_stack, vm_stack_size and cfp begin rb_execution_context_t; iseq: flags, wrapper, body; body: type,
 *                  iseq_size, iseq_encoded; method entry: flags, defined_class, def; def: 4 bits of type first
 * a call's site    an operand of its instruction, in the iseq's call_data (struct rb_call_data: ci, cc; vm_callinfo.h); cc: flags,
 *                  klass, cme_; call_data and ci_size stand where they do by what precedes them in rb_iseq_constant_body
 */
#ifndef PITWALL_VM_LAYOUT_H
#define PITWALL_VM_LAYOUT_H

#include "vm_compat.h"

enum {
    /* rb_thread_t, in bytes */
    PW_THREAD_SELF = 16,
    PW_THREAD_EC = PW_LAYOUT_RUBY == 31 ? 40 : 48,
    /* rb_execution_context_t, in words */
    PW_EC_STACK = 0, PW_EC_STACK_WORDS = 1, PW_EC_CFP = 2, PW_EC_WORDS = 3,
    /* rb_control_frame_t, in words; the stack's end is the root, each call pushes one at a lower address */
    PW_CFP_PC = 0, PW_CFP_SP = 1, PW_CFP_ISEQ = 2, PW_CFP_EP = 4,
    PW_CFP_WORDS = PW_LAYOUT_RUBY == 31 ? 8 : 7,
    /* frames at the root that stand for nothing (from 3.2 on; before, rb_profile_frames listed the main thread's) */
    PW_ROOT_FRAMES = PW_LAYOUT_RUBY == 31 ? 0 : 1,
    /* Ruby frames without a pc (an extension's Init function runs under one) are listed until 3.2 */
    PW_RUBY_FRAME_HAS_PC = PW_LAYOUT_RUBY != 31,
    /* an environment, in words from ep */
    PW_EP_ME_CREF = -2, PW_EP_SPECVAL = -1, PW_EP_FLAGS = 0,
    /* objects, in words */
    PW_ISEQ_BODY = 2, PW_BODY_ENCODED = 1, PW_SVAR_CREF_OR_ME = 1, PW_ME_DEF = 2,
    PW_DEF_CODE = 1, /* of a method written in Ruby; checked by what it says */
    PW_BODY_CALL_DATA = PW_LAYOUT_RUBY == 31 ? 24 : 23, PW_BODY_WORDS = 32,
    PW_BODY_CALL_DATA_COUNT = PW_LAYOUT_RUBY == 31 ? 62 : 63, /* in ints */
    PW_CALL_DATA_CACHE = 1, PW_CALL_DATA_WORDS = 2, PW_CACHE_METHOD = 2
};

#define PW_CFP_BYTES (PW_CFP_WORDS * sizeof(VALUE))

/* ep[0]: a tag bit that no object pointer has, flags, and a magic number in bits 16 to 30. */
#define PW_ENV_LOCAL 0x2u
#define PW_FRAME_C 0x80u

/* Of the frames of C code, is this a method's? */
static inline bool pw_frame_is_call_of_c(const VALUE *ep) { return (ep[PW_EP_FLAGS] >> 16 & 0x7fff) == 0x5555; }

static inline bool
pw_env_flags_plausible(VALUE flags)
{
    unsigned magic = (unsigned)(flags >> 16);
    bool repeated = magic == 0x7888 || magic == 0x7999 || (magic % 0x1111 == 0 && magic / 0x1111 >= 1 && magic / 0x1111 <= 7);
    return (flags & 1) && flags >> 31 == 0 && repeated;
}

enum { PW_IMEMO_CREF = 1, PW_IMEMO_SVAR = 2, PW_IMEMO_IFUNC = 4, PW_IMEMO_MENT = 6, PW_IMEMO_ISEQ = 7, PW_IMEMO_CALLCACHE = 12 };
enum { PW_METHOD_ISEQ = 0, PW_METHOD_CFUNC = 1 };

/* The imemo sub-type in an object's first word, or -1. */
static inline int
pw_imemo_of_flags(VALUE flags)
{
    return (flags & RUBY_T_MASK) == RUBY_T_IMEMO ? (int)((flags >> RUBY_FL_USHIFT) & 0xf) : -1;
}

static inline int pw_method_type_of(VALUE definition_word) { return (int)(definition_word & 0xf); }

/* Low bits of a parent environment's address say what else it is. */
static inline const VALUE *pw_parent_ep(VALUE specval) { return (const VALUE *)(specval & ~(VALUE)3); }

/* What a hook added with RUBY_EVENT_HOOK_FLAG_RAW_ARG is handed (rb_trace_arg_t, vm_core.h and vm_trace.c): the same in all three.
 * `cfp` is the frame on top: a C function's caller before its frame is pushed and after it was popped. */
typedef struct {
    uint32_t event;
    const VALUE *ec, *cfp;
    VALUE self;
    ID id, called_id;
    VALUE klass, data;
} pw_trace_arg;

/* Methods in Ruby may be told as if they were C functions. */
#define PW_TOLD_AS_C (PW_LAYOUT_RUBY == 34)

/* A method entry, in words: under which name, and whose. */
enum { PW_ME_CALLED_ID = 3, PW_ME_OWNER = 4 };

#endif

/* Holds vm_layout.h against the private headers of one Ruby. layout_test.rb compiles and runs this once a Ruby.
 *
 *   -DPW_RUBY=34   the column; -I names the folder of that Ruby's private headers
 *   -DC_TRACE      those headers have BUILTIN_ATTR_C_TRACE
 *   -DCALLINFO     they include vm_callinfo.h
 *
 * The public headers may be another Ruby's. What the private headers need of newer public ones is defined first. */
#include <ruby/ruby.h>
#include <ruby/atomic.h>
#include <ruby/version.h>

#if RUBY_API_VERSION_MAJOR < 4 /* RObject's union is `ivptr` before 4.0 and `fields` from 4.0 on */
# define ROBJECT_HEAP FL_USER0
# if PW_RUBY >= 40
#  define fields ivptr
# endif
#elif PW_RUBY < 40
# define ivptr fields
#endif
#ifndef RBIMPL_ATOMIC_RELAXED
# define RBIMPL_ATOMIC_RELAXED 0
# define rbimpl_atomic_load(address, ...) (*(address))
#endif
#ifndef RUBY_ATOMIC_VALUE_SET
# define RUBY_ATOMIC_VALUE_SET(place, value) ((place) = (value))
#endif
#ifndef RBIMPL_ATTR_PACKED_STRUCT_UNALIGNED_BEGIN
# define RBIMPL_ATTR_PACKED_STRUCT_UNALIGNED_BEGIN()
# define RBIMPL_ATTR_PACKED_STRUCT_UNALIGNED_END()
#endif
#ifndef MJIT_STATIC
# define MJIT_STATIC
# define MJIT_FUNC_EXPORTED
# define MJIT_SYMBOL_EXPORT_BEGIN
# define MJIT_SYMBOL_EXPORT_END
#endif
#ifndef RARRAY_CONST_PTR_TRANSIENT
# define RARRAY_CONST_PTR_TRANSIENT RARRAY_CONST_PTR
#endif
/* Ruby's own assertions compare the sizes of private and public structs. */
#undef RBIMPL_STATIC_ASSERT
#define RBIMPL_STATIC_ASSERT(name, condition) _Static_assert(1, #name)

#include "vm_core.h"
#include "iseq.h"
#include "method.h"
#include "internal/imemo.h"
#ifdef CALLINFO
# include "vm_callinfo.h"
#endif
#if PW_RUBY == 31
# include "ractor_core.h"
#endif
#undef fields
#undef ivptr

#include "vm/vm_layout.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(PW_LAYOUT_RUBY == PW_RUBY, "PW_LAYOUT_RUBY: this Ruby has no column");

#define SAME(name, value) _Static_assert((long)(name) == (long)(value), #name " is " #value)
#define WORD_OF(type, field) (offsetof(type, field) / sizeof(VALUE) + (offsetof(type, field) % sizeof(VALUE) ? 100000 : 0))
#define INT_OF(type, field) (offsetof(type, field) / sizeof(int))
typedef rb_execution_context_t context;
typedef rb_control_frame_t frame;
typedef struct rb_iseq_constant_body body;
typedef rb_callable_method_entry_t entry;
typedef struct rb_trace_arg_struct trace_arg;

SAME(PW_THREAD_SELF, offsetof(rb_thread_t, self));
SAME(PW_THREAD_EC, offsetof(rb_thread_t, ec));
SAME(PW_EC_STACK, WORD_OF(context, vm_stack));
SAME(PW_EC_STACK_WORDS, WORD_OF(context, vm_stack_size));
SAME(PW_EC_CFP, WORD_OF(context, cfp));
SAME(PW_EC_WORDS, WORD_OF(context, cfp) + 1);

#if PW_RUBY == 31
SAME(PW_EC_THREAD_31, offsetof(context, thread_ptr));
SAME(PW_THREAD_RACTOR_31, offsetof(rb_thread_t, ractor));
SAME(PW_RACTOR_OWNER_31, offsetof(rb_ractor_t, threads.gvl.owner));
SAME(PW_RACTOR_LOCK_31, offsetof(rb_ractor_t, threads.gvl.lock));
#endif

SAME(PW_CFP_PC, WORD_OF(frame, pc));
SAME(PW_CFP_SP, WORD_OF(frame, sp));
SAME(PW_CFP_ISEQ, WORD_OF(frame, iseq));
SAME(PW_CFP_EP, WORD_OF(frame, ep));
SAME(PW_CFP_SELF, WORD_OF(frame, self));
SAME(PW_CFP_WORDS, sizeof(frame) / sizeof(VALUE));
SAME(PW_EP_ME_CREF, VM_ENV_DATA_INDEX_ME_CREF);
SAME(PW_EP_SPECVAL, VM_ENV_DATA_INDEX_SPECVAL);
SAME(PW_EP_FLAGS, VM_ENV_DATA_INDEX_FLAGS);
SAME(PW_ENV_LOCAL, VM_ENV_FLAG_LOCAL);
SAME(PW_FRAME_C, VM_FRAME_FLAG_CFRAME);
SAME(PW_FRAME_FINISH, VM_FRAME_FLAG_FINISH);
SAME(PW_MAGIC_OF_DUMMY, (VM_FRAME_MAGIC_DUMMY & VM_FRAME_MAGIC_MASK) >> 16);
SAME(PW_MAGIC_OF_C_METHOD, (VM_FRAME_MAGIC_CFUNC & VM_FRAME_MAGIC_MASK) >> 16);

SAME(PW_IMEMO_CREF, imemo_cref);
SAME(PW_IMEMO_SVAR, imemo_svar);
SAME(PW_IMEMO_IFUNC, imemo_ifunc);
SAME(PW_IMEMO_MENT, imemo_ment);
SAME(PW_IMEMO_ISEQ, imemo_iseq);
SAME(PW_IMEMO_CALLCACHE, imemo_callcache);
SAME(PW_SVAR_CREF_OR_ME, WORD_OF(struct vm_svar, cref_or_me));

SAME(PW_ISEQ_BODY, WORD_OF(rb_iseq_t, body));
SAME(PW_BODY_SIZE, INT_OF(body, iseq_size));
SAME(PW_BODY_ENCODED, WORD_OF(body, iseq_encoded));
SAME(PW_BODY_CALL_DATA, WORD_OF(body, call_data));
SAME(PW_BODY_CALL_DATA_COUNT, INT_OF(body, ci_size));
_Static_assert(PW_BODY_WORDS * sizeof(VALUE) <= sizeof(body), "PW_BODY_WORDS is at most sizeof(body)");
_Static_assert(PW_BODY_WORDS * 2 > INT_OF(body, ci_size) && PW_BODY_WORDS > WORD_OF(body, call_data), "PW_BODY_WORDS reaches ci_size");

SAME(PW_ME_DEF, WORD_OF(entry, def));
SAME(PW_DEF_ARGC, WORD_OF(struct rb_method_definition_struct, body.cfunc.argc));
SAME(PW_ME_CALLED_ID, WORD_OF(entry, called_id));
SAME(PW_ME_OWNER, WORD_OF(entry, owner));
SAME(PW_DEF_CODE, WORD_OF(rb_method_definition_t, body.iseq.iseqptr));
SAME(PW_DEF_FUNCTION, WORD_OF(rb_method_definition_t, body.cfunc.func));
SAME(PW_METHOD_ISEQ, VM_METHOD_TYPE_ISEQ);
SAME(PW_METHOD_CFUNC, VM_METHOD_TYPE_CFUNC);
SAME(PW_METHOD_ALIAS, VM_METHOD_TYPE_ALIAS);
SAME(PW_DEF_ALIASED, WORD_OF(rb_method_definition_t, body.alias.original_me));
#ifdef C_TRACE
SAME(PW_TOLD_AS_C, 1);
#else
SAME(PW_TOLD_AS_C, 0);
#endif
#ifdef CALLINFO
SAME(PW_CALL_DATA_CACHE, WORD_OF(struct rb_call_data, cc));
SAME(PW_CALL_DATA_WORDS, sizeof(struct rb_call_data) / sizeof(VALUE));
SAME(PW_CACHE_METHOD, WORD_OF(struct rb_callcache, cme_));
#endif

#define SAME_FIELD(name) _Static_assert(offsetof(pw_trace_arg, name) == offsetof(trace_arg, name) && \
    sizeof((pw_trace_arg *)0)->name == sizeof((trace_arg *)0)->name, "pw_trace_arg." #name)
SAME_FIELD(event);
SAME_FIELD(ec);
SAME_FIELD(cfp);
SAME_FIELD(self);
SAME_FIELD(id);
SAME_FIELD(called_id);
SAME_FIELD(klass);
SAME_FIELD(data);

static int failures;

static void
check(bool holds, const char *what)
{
    if (holds) return;
    failures++;
    printf("%s\n", what);
}

/* What only a program can tell: bit-fields, and the functions of vm_layout.h. */
int
main(void)
{
    static const VALUE magics[] = {VM_FRAME_MAGIC_METHOD, VM_FRAME_MAGIC_BLOCK, VM_FRAME_MAGIC_CLASS, VM_FRAME_MAGIC_TOP, VM_FRAME_MAGIC_CFUNC,
                                   VM_FRAME_MAGIC_IFUNC, VM_FRAME_MAGIC_EVAL, VM_FRAME_MAGIC_RESCUE, VM_FRAME_MAGIC_DUMMY};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        VALUE ep = magics[i] | VM_ENV_FLAG_LOCAL | VM_FRAME_FLAG_CFRAME | VM_FRAME_FLAG_FINISH;
        check(pw_env_flags_plausible(ep), "pw_env_flags_plausible refuses a VM_FRAME_MAGIC_…");
        check(pw_frame_is_call_of_c(&ep) == (magics[i] == VM_FRAME_MAGIC_CFUNC), "pw_frame_is_call_of_c");
    }
    check(!pw_env_flags_plausible(VM_FRAME_MAGIC_MASK), "pw_env_flags_plausible takes VM_FRAME_MAGIC_MASK");

    check(pw_imemo_of_flags(T_IMEMO | (VALUE)imemo_callcache << FL_USHIFT | FL_WB_PROTECTED) == imemo_callcache, "pw_imemo_of_flags");
    check(pw_imemo_of_flags(T_DATA | (VALUE)imemo_iseq << FL_USHIFT) == -1, "pw_imemo_of_flags of another type");
    check(IMEMO_MASK == 0xf || IMEMO_MASK == (VALUE)0xf << FL_USHIFT, "pw_imemo_of_flags: IMEMO_MASK has other bits");

    for (int type = 0; type < 1 << VM_METHOD_TYPE_MINIMUM_BITS; type++) {
        rb_method_definition_t definition;
        VALUE word;
        memset(&definition, 0xff, sizeof definition);
        definition.type = type;
        memcpy(&word, &definition, sizeof word);
        check(pw_method_type_of(word) == type, "pw_method_type_of");
    }
    check(pw_parent_ep(0x1003) == (const VALUE *)GC_GUARDED_PTR_REF(0x1003), "pw_parent_ep");
    return failures > 0;
}

#include "vm/frame_roles.h"
#include "tools/readable.h"
#include "vm/vm_stack.h"

#if PW_LAYOUT_RUBY

/* The flags of a control frame; 0: its words make no sense. Only the frame on top may be half pushed, so only its
 * environment is checked. */
static VALUE
flags_of(const pw_vm_stack *s, const VALUE *cfp)
{
    const VALUE *ep = (const VALUE *)PW_LOAD(cfp[PW_CFP_EP]);
    if (!pw_pointer_like((VALUE)ep)) return 0;
    bool inside = ep >= s->base + 2 && ep < s->end;
    if (!inside && cfp == s->cfp && !pw_readable((uintptr_t)ep)) return 0;
    VALUE flags = PW_LOAD(ep[PW_EP_FLAGS]);
    return pw_env_flags_plausible(flags) ? flags : 0;
}

/* `entry`: a method entry that the walk has checked, of a C function. */
static uintptr_t
function_of(VALUE entry)
{
    VALUE definition = ((const VALUE *)entry)[PW_ME_DEF];
    return pw_pointer_like(definition) ? ((const VALUE *)definition)[PW_DEF_FUNCTION] : 0;
}

static pw_frame_role
role_of(const pw_vm_stack *s, const VALUE *cfp, const pw_frame_seen *seen)
{
    VALUE flags = flags_of(s, cfp);
    bool dummy = (flags >> 16 & 0x7fff) == PW_MAGIC_OF_DUMMY;
    if (!seen->frame || dummy) return (pw_frame_role){0, PW_ROLE_NONE};
    if (flags & PW_FRAME_C) return (pw_frame_role){function_of(seen->frame), PW_ROLE_C};
    /* the frame under which an extension's Init function runs has the flag, and runs no Ruby code */
    bool runs = PW_LOAD(cfp[PW_CFP_PC]) || pw_frame_is_method_or_block(flags);
    return (pw_frame_role){0, (flags & PW_FRAME_FINISH) && runs ? PW_ROLE_FIRST : PW_ROLE_CODE};
}

bool
pw_frame_roles(const pw_walk *w, uint32_t from, pw_frame_role *roles)
{
    pw_vm_stack s;
    const VALUE *ec = pw_context_of(w->thread);
    bool whole = pw_pointer_like((VALUE)ec) && pw_vm_stack_of(ec, &s) &&
                 (size_t)(s.end - s.cfp) / PW_CFP_WORDS - PW_ROOT_FRAMES == w->depth + w->cut;
    if (!whole) {
        for (uint32_t i = 0; i < w->depth; i++) {
            roles[i] = (pw_frame_role){0, w->seen[i].frame ? PW_ROLE_CODE : PW_ROLE_NONE};
        }
        return false;
    }
    const VALUE *cfp = s.end - (size_t)(PW_ROOT_FRAMES + w->cut + 1 + from) * PW_CFP_WORDS;
    for (uint32_t i = from; i < w->depth; i++, cfp -= PW_CFP_WORDS) roles[i] = role_of(&s, cfp, &w->seen[i]);
    return true;
}

#else

bool pw_frame_roles(const pw_walk *w, uint32_t from, pw_frame_role *roles) { return false; }

#endif

#include "vm/stack_walk.h"
#include "tools/readable.h"
#include "vm/known_frames.h"
#include "vm/peek.h"
#include "vm/vm_stack.h"
#include <stdlib.h>
#include <string.h>

static const char *refusal = "not tried yet"; /* NULL: the self-test has passed */

size_t
pw_walk_bytes(uint32_t room)
{
    return room * (sizeof(pw_frame_key) + sizeof(pw_frame_seen));
}

void
pw_walk_place(pw_walk *w, void *memory, uint32_t room)
{
    w->keys = memory;
    w->seen = (pw_frame_seen *)(w->keys + room);
    w->room = room;
}

#if PW_LAYOUT_RUBY

static bool sites_known; /* the self-test of call sites has passed */

/* Looked up once, at load, because a handler must not resolve a lazy binding. */
static unsigned int (*line_no)(const void *iseq, size_t position);

/* A handler may find the top-most frame half pushed: a new frame's words may be written in any order. The frames
 * below are complete, because the thread has been running on top of them. So a word of the top-most frame is
 * followed out of the VM stack only if pw_readable says that the address can be read. */
/* Returns where ep[-2] to ep[0] may be read, as a pointer like ep, or NULL. An environment is in the VM stack or, if
 * escaped, in the heap. `room` is for an environment that has to be copied. */
static const VALUE *
env_at(const pw_vm_stack *s, const VALUE *ep, bool top, VALUE room[3])
{
    if (!pw_pointer_like((VALUE)ep)) return NULL;
    bool inside = ep >= s->base + 2 && ep < s->end;
    const pw_stack_copy *copy = s->copy;
    if (!copy) return inside || !top || (pw_readable((uintptr_t)(ep - 2)) && pw_readable((uintptr_t)ep)) ? ep : NULL;
    if (inside && copy->in_place) return ep;
    if (inside && ep - 2 >= copy->from && ep < copy->to) return copy->values + (ep - copy->from);
    return pw_peek(ep - 2, room, 3 * sizeof(VALUE)) ? room + 2 : NULL;
}

/* As env_at, for the environment of a control frame. */
static const VALUE *
env_of(const pw_vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top, VALUE room[3])
{
    size_t n = (size_t)(cfp - s->cfp) / PW_CFP_WORDS;
    if (s->copy && cfp >= s->cfp && n < PW_EARLY_FRAMES && s->copy->env_of[n] == ep) return &s->copy->env[n][2];
    return env_at(s, ep, top, room);
}

/* Returns where a control frame's words may be read. */
static const VALUE *
frame_at(const pw_vm_stack *s, const VALUE *cfp)
{
    size_t n = (size_t)(cfp - s->cfp);
    return s->copy && n < s->copy->frame_words ? s->copy->frames + n : cfp;
}

static int
imemo_type(const pw_vm_stack *s, VALUE word, bool top)
{
    if (!pw_pointer_like(word)) return -1;
    if (s->copy) return pw_object_look(word)->imemo;
    if (top && !pw_known(word) && !pw_readable(word)) return -1;
    return pw_imemo_of_flags(*(const VALUE *)word);
}

/* As rb_vm_frame_method_entry, but PW_DOUBTFUL if words make no sense. (While an environment escapes to the heap,
 * its old place holds an object instead of the flags.) */
static VALUE
method_entry(const pw_vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top)
{
    VALUE room[3];
    const VALUE *env = env_of(s, cfp, ep, top, room);
    for (int hops = 0; hops < 256 && env; hops++) {
        VALUE flags = PW_LOAD(env[PW_EP_FLAGS]), word = PW_LOAD(env[PW_EP_ME_CREF]);
        if (!pw_env_flags_plausible(flags)) return PW_DOUBTFUL;
        int type = word ? imemo_type(s, word, top) : -1;
        if (type == PW_IMEMO_MENT) return word;
        if (flags & PW_ENV_LOCAL) {
            if (type == PW_IMEMO_SVAR) {
                word = s->copy ? pw_object_look(word)->second : ((const VALUE *)word)[PW_SVAR_CREF_OR_ME];
                type = word ? imemo_type(s, word, top) : -1;
                if (type == PW_IMEMO_MENT) return word;
            }
            return word && type != PW_IMEMO_CREF ? PW_DOUBTFUL : 0;
        }
        env = env_at(s, pw_parent_ep(PW_LOAD(env[PW_EP_SPECVAL])), top, room);
    }
    return PW_DOUBTFUL;
}

/* Whether the copied environment is the control frame's own. True if no environment was copied. */
static bool
sure_of(const pw_vm_stack *s, const VALUE *cfp)
{
    size_t n = (size_t)(cfp - s->cfp) / PW_CFP_WORDS;
    return !s->copy || cfp < s->cfp || n >= PW_EARLY_FRAMES || !s->copy->env_of[n] || s->copy->sure[n];
}

/* Whether a C function on top stayed there until all words that identify the function were copied. */
static bool
leaf_stayed(const pw_vm_stack *s, const VALUE *cfp)
{
    return !s->copy || cfp != s->cfp || (s->copy->sure[0] && (s->copy->env_of[0] || !s->copy->in_place));
}

/* Whether the iseq is the code of the method itself, by the method's definition. A word that is wrong for any reason
 * does not equal this iseq's address. */
static bool
is_code_of(VALUE entry, VALUE iseq)
{
    VALUE definition, code;
    if (entry == PW_DOUBTFUL || !pw_peek((const VALUE *)entry + PW_ME_DEF, &definition, sizeof definition)) {
        return false;
    }
    return pw_peek((const VALUE *)definition + PW_DEF_CODE, &code, sizeof code) && code == iseq;
}

static int
method_type(VALUE entry, bool top)
{
    VALUE definition = ((const VALUE *)entry)[PW_ME_DEF];
    if (!pw_pointer_like(definition) || (top && !pw_known(entry) && !pw_readable(definition))) return -1;
    return pw_method_type_of(*(const uint32_t *)definition);
}

static int
line_of(const pw_vm_stack *s, VALUE iseq, VALUE pc)
{
    VALUE encoded, shadow[8] = {0};
    uint32_t size;
    /* the line table is not in the heap: an iseq of our own (`shadow`) leads to the table without touching the
     * object */
    if (s->copy) {
        const pw_object_seen *seen = pw_object_look(iseq);
        if (seen->imemo != PW_IMEMO_ISEQ) return 0;
        encoded = seen->encoded, size = seen->size;
        shadow[PW_ISEQ_BODY] = seen->body;
        iseq = (VALUE)shadow;
    }
    else {
        const VALUE *body = (const VALUE *)((const VALUE *)iseq)[PW_ISEQ_BODY];
        if (!pw_pointer_like((VALUE)body)) return 0;
        encoded = body[PW_BODY_ENCODED], size = ((const uint32_t *)body)[PW_BODY_SIZE];
    }
    if (!pw_pointer_like(encoded)) return 0;
    /* Compiled code saves its pc only before calls. So the top-most frame may hold an older pc, even another iseq's
     * pc, or none. If the pc is outside the iseq, the line is the first line with code. */
    bool within = pc >= encoded && pc <= encoded + size * sizeof(VALUE);
    size_t position = within ? (pc - encoded) / sizeof(VALUE) : 0;
    return (int)line_no((const void *)iseq, position ? position - 1 : 0);
}

/* Returns the C function that was called last from the call site at that address, as the site's cache says. 0: the
 * address is no call site of this code, or the function called is no C function. */
static VALUE
c_function_of_site(VALUE site, VALUE sites, uint32_t count)
{
    VALUE cache, words[PW_CACHE_METHOD + 1];
    size_t bytes = PW_CALL_DATA_WORDS * sizeof(VALUE);
    if (site < sites || site - sites >= count * bytes || (site - sites) % bytes != 0) return 0;
    if (!pw_peek((const VALUE *)site + PW_CALL_DATA_CACHE, &cache, sizeof cache) || !pw_pointer_like(cache)) return 0;
    if (!pw_peek((const void *)cache, words, sizeof words) || pw_imemo_of_flags(words[0]) != PW_IMEMO_CALLCACHE) {
        return 0;
    }
    VALUE entry = words[PW_CACHE_METHOD];
    return pw_pointer_like(entry) && pw_object_look(entry)->method == PW_METHOD_CFUNC ? entry : 0;
}

/* Returns the C function that code at `pc` calls, or called shortly before; 0: not known. The call site is an
 * operand of the instruction before pc. */
VALUE
pw_c_function_called(VALUE iseq, VALUE pc)
{
    enum { BACK = 24 };
    VALUE words[BACK];
    pw_object_seen code = *pw_object_look(iseq);
    if (code.imemo != PW_IMEMO_ISEQ || pc <= code.encoded || pc > code.encoded + code.size * sizeof(VALUE)) return 0;
    size_t before = (pc - code.encoded) / sizeof(VALUE), n = before < BACK ? before : BACK;
    if (!pw_peek((const VALUE *)pc - n, words, n * sizeof(VALUE))) return 0;
    VALUE found = 0;
    while (n > 0 && !found) found = c_function_of_site(words[--n], code.sites, code.site_count);
    return found;
}

/* Finds a C function on top by its caller, if the words that identify the function were gone before they were
 * copied. The caller's frame still tells which function was called: the caller's pc is right next to the function's
 * frame. The word that names the function is in another place. */
static VALUE
c_function_by_caller(const pw_vm_stack *s, const VALUE *cfp)
{
    const pw_stack_copy *copy = s->copy;
    if (!sites_known || leaf_stayed(s, cfp) || copy->frame_words < 2 * PW_CFP_WORDS) return 0;
    const VALUE *caller = copy->frames + PW_CFP_WORDS;
    return caller[PW_CFP_ISEQ] ? pw_c_function_called(caller[PW_CFP_ISEQ], caller[PW_CFP_PC]) : 0;
}

static void
look_at_c_function(const pw_vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top, pw_frame_seen *seen)
{
    VALUE entry = method_entry(s, cfp, ep, top);
    if (!entry || entry == PW_DOUBTFUL) return;
    int type = s->copy ? pw_object_look(entry)->method : method_type(entry, top);
    if (type == PW_METHOD_CFUNC) seen->frame = entry;
}

/* Whether a frame without a pc belongs to compiled code. Compiled code (YJIT, ZJIT) writes no pc into the frame of a
 * method or block that it calls. The pc is 0 if a C function's frame was there before. (rb_profile_frames leaves
 * such a frame out.) The interpreter has other frames without a pc, in which no Ruby code runs. One is the frame of
 * an extension's Init function. */
static bool
is_of_compiled_code(const pw_vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top)
{
    VALUE room[3];
    const VALUE *env = env_of(s, cfp, ep, top, room);
    VALUE flags = env ? PW_LOAD(env[PW_EP_FLAGS]) : 0;
    return pw_env_flags_plausible(flags) && pw_frame_is_method_or_block(flags);
}

/* Finds the code, the owner and the line of a control frame. */
static void
look(const pw_vm_stack *s, const VALUE *cfp, bool top, bool want_owner, pw_frame_seen *seen)
{
    const VALUE *words = frame_at(s, cfp);
    VALUE iseq = PW_LOAD(words[PW_CFP_ISEQ]), pc = PW_LOAD(words[PW_CFP_PC]);
    const VALUE *ep = (const VALUE *)PW_LOAD(words[PW_CFP_EP]);
    *seen = (pw_frame_seen){0};
    bool known = iseq && pw_known(iseq); /* a block's C function is never known, because it is never listed */
    if (!iseq && (seen->frame = c_function_by_caller(s, cfp))) return;
    if (!known) {
        VALUE room[3];
        const VALUE *env = env_of(s, cfp, ep, top, room);
        VALUE flags = env ? PW_LOAD(env[PW_EP_FLAGS]) : 0;
        if (!pw_env_flags_plausible(flags)) return;
        if (flags & PW_FRAME_C) {
            look_at_c_function(s, cfp, ep, top, seen);
            return;
        }
    }
    if ((!pc && PW_RUBY_FRAME_HAS_PC && !is_of_compiled_code(s, cfp, ep, top)) ||
        imemo_type(s, iseq, top) != PW_IMEMO_ISEQ) {
        return;
    }
    seen->frame = iseq;
    seen->line = line_of(s, iseq, pc);
    if (known && !want_owner) return;
    seen->owner = method_entry(s, cfp, ep, top);
    if (seen->owner && !sure_of(s, cfp) && !is_code_of(seen->owner, iseq)) seen->owner = PW_DOUBTFUL;
}

static pw_frame_key
key_of(const pw_vm_stack *s, const VALUE *cfp)
{
    const VALUE *words = frame_at(s, cfp);
    pw_frame_key key = {PW_LOAD(words[PW_CFP_ISEQ]), PW_LOAD(words[PW_CFP_EP]), PW_LOAD(words[PW_CFP_PC])};
    if (key.iseq) return key;
    /* Without this word the frames of all C functions would look alike. A C function's method entry is in its
     * environment. */
    VALUE room[3];
    const VALUE *env = env_of(s, cfp, (const VALUE *)key.ep, cfp == s->cfp, room);
    key.place = env ? PW_LOAD(env[PW_EP_ME_CREF]) : 0;
    return key;
}

static bool
find_stack(const VALUE *ec, pw_vm_stack *s)
{
    return pw_pointer_like((VALUE)ec) && pw_vm_stack_of(ec, s);
}

VALUE
pw_walk_owner(const void *ec, const VALUE *cfp)
{
    pw_vm_stack s;
    VALUE owner = find_stack(ec, &s) ? method_entry(&s, cfp, (const VALUE *)cfp[PW_CFP_EP], false) : 0;
    return owner == PW_DOUBTFUL ? 0 : owner;
}

void
pw_walk_frames(const void *ec, const VALUE *leaf,
               void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data)
{
    pw_vm_stack s;
    if (!find_stack(ec, &s)) return;
    const VALUE *cfp = s.end - (size_t)(PW_ROOT_FRAMES + 1) * PW_CFP_WORDS;
    for (; cfp >= leaf && cfp >= s.cfp; cfp -= PW_CFP_WORDS) {
        pw_frame_seen seen;
        look(&s, cfp, false, true, &seen);
        if (seen.frame) each(cfp, &seen, data);
    }
}

uint32_t
pw_walk_stack(pw_walk *w)
{
    return pw_walk_context(w, pw_context_of(w->thread));
}

uint32_t
pw_walk_frames_of(pw_walk *w, const pw_vm_stack *s)
{
    uint32_t before = w->depth, i = 0;
    uint32_t count = (uint32_t)((s->end - s->cfp) / PW_CFP_WORDS) - PW_ROOT_FRAMES;
    uint32_t cut = count > w->room ? count - w->room : 0, depth = count - cut;
    uint32_t limit = depth < before ? depth : before;
    const VALUE *cfp = s->end - (size_t)(PW_ROOT_FRAMES + cut + 1) * PW_CFP_WORDS;

    for (; i < limit; i++, cfp -= PW_CFP_WORDS) {
        const pw_frame_key *old = &w->keys[i];
        pw_frame_key key = key_of(s, cfp);
        if (key.place != old->place || key.iseq != old->iseq || key.ep != old->ep) break;
    }
    uint32_t same = i, listed = pw_walk_listed(w, i);
    for (; i < depth; i++, cfp -= PW_CFP_WORDS) {
        pw_frame_key key = key_of(s, cfp), *old = &w->keys[i];
        pw_frame_seen *seen = &w->seen[i];
        if (i >= before || key.place != old->place || key.iseq != old->iseq || key.ep != old->ep) {
            *old = key;
            look(s, cfp, cfp == s->cfp && !w->settled, w->every_owner, seen);
            bool half_there = cfp == s->cfp && (!seen->frame || (!key.iseq && !leaf_stayed(s, cfp)));
            if (seen->owner == PW_DOUBTFUL || half_there) old->ep = 0; /* look again */
        }
        seen->listed = listed += seen->frame != 0;
    }
    if (cut != w->cut) same = 0; /* the entry for the part left out appears or disappears */
    if (same < w->kept) w->kept = same;
    w->cut = cut;
    w->depth = depth;
    return same;
}

uint32_t
pw_walk_context(pw_walk *w, const void *context)
{
    pw_vm_stack s;
    if (find_stack(context, &s)) return pw_walk_frames_of(w, &s);
    return w->depth = 0;
}

bool pw_walk_own(void) { return !refusal; }

const void *
pw_walk_context_of(VALUE thread)
{
    const uint8_t *data = RTYPEDDATA_DATA(thread);
    return data && *(const VALUE *)(data + PW_THREAD_SELF) == thread ? pw_context_of(data) : NULL;
}

const VALUE *
pw_walk_innermost(const void *context, const VALUE *from)
{
    const VALUE *ec = context, *end = (const VALUE *)ec[PW_EC_STACK] + ec[PW_EC_STACK_WORDS];
    for (const VALUE *cfp = from; cfp < end; cfp += PW_CFP_WORDS) {
        if (cfp[PW_CFP_PC] && cfp[PW_CFP_ISEQ]) return cfp;
    }
    return NULL;
}

bool
pw_walk_has(const void *context, const VALUE *control_frame)
{
    pw_vm_stack s;
    if (!pw_vm_stack_of(context, &s) || control_frame < s.cfp || control_frame >= s.end) return false;
    return (size_t)(s.end - control_frame) % PW_CFP_WORDS == 0;
}

bool
pw_walk_find(bool (*wanted)(VALUE iseq, void *data), void *data, uint32_t most, pw_frame_seen *found)
{
    const VALUE *ec = pw_walk_context_of(rb_thread_current());
    if (!ec) return false;
    const VALUE *end = (const VALUE *)ec[PW_EC_STACK] + ec[PW_EC_STACK_WORDS], *cfp = (const VALUE *)ec[PW_EC_CFP];
    for (uint32_t i = 0; i < most && cfp < end; i++, cfp += PW_CFP_WORDS) {
        if (cfp[PW_CFP_PC] && cfp[PW_CFP_ISEQ] && wanted(cfp[PW_CFP_ISEQ], data)) return pw_walk_look(ec, cfp, found);
    }
    return false;
}

bool
pw_walk_look(const void *context, const VALUE *control_frame, pw_frame_seen *seen)
{
    pw_vm_stack s;
    if (!find_stack(context, &s)) return false;
    look(&s, control_frame, false, true, seen);
    return seen->frame != 0;
}

void
pw_walk_aim(pw_walk *w, VALUE thread)
{
    const uint8_t *data = refusal ? NULL : RTYPEDDATA_DATA(thread);
    w->thread = data && *(const VALUE *)(data + PW_THREAD_SELF) == thread ? data : NULL;
}

bool pw_frame_is_iseq(VALUE frame) { return pw_imemo_of_flags(*(const VALUE *)frame) == PW_IMEMO_ISEQ; }

bool
pw_method_is_ruby(VALUE entry)
{
    return pw_imemo_of_flags(*(const VALUE *)entry) == PW_IMEMO_MENT && method_type(entry, false) == PW_METHOD_ISEQ;
}

bool
pw_walk_has_lines(void)
{
    line_no = rb_iseq_line_no;
    return line_no != NULL;
}

void pw_walk_trust_sites(void) { sites_known = true; }

#else /* unknown layout */

void pw_walk_aim(pw_walk *w, VALUE thread) { w->thread = NULL; }
VALUE pw_walk_owner(const void *ec, const VALUE *cfp) { return 0; }
void pw_walk_frames(const void *ec, const VALUE *leaf,
                    void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data) {}
uint32_t pw_walk_stack(pw_walk *w) { return w->depth = 0; }
bool pw_walk_own(void) { return false; }
const void *pw_walk_context_of(VALUE thread) { return NULL; }
uint32_t pw_walk_context(pw_walk *w, const void *context) { return w->depth = 0; }
const VALUE *pw_walk_innermost(const void *context, const VALUE *from) { return NULL; }
bool pw_walk_has(const void *context, const VALUE *control_frame) { return false; }
bool pw_walk_find(bool (*wanted)(VALUE iseq, void *data), void *data, uint32_t most,
                  pw_frame_seen *found) { return false; }
bool pw_walk_look(const void *context, const VALUE *control_frame, pw_frame_seen *seen) { return false; }
bool pw_method_is_ruby(VALUE entry) { return false; }
bool pw_frame_is_iseq(VALUE frame) { return false; }

#endif

void pw_walk_set_refusal(const char *why) { refusal = why; }
bool pw_walk_in_use(void) { return !refusal; }
const char *pw_walk_refusal(void) { return refusal; }

#include "vm/stack_walk.h"
#include "vm/known_frames.h"
#include "vm/peek.h"
#include "sampler.h"
#include "tools/readable.h"
#include "vm/vm_layout.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Atomic VALUE pw_known_slots[PW_KNOWN_SLOTS];
uint32_t pw_known_generation;

static const char *refusal = "not tried yet"; /* NULL: the self-test has held */

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

static bool sites_known; /* the self-test of calls' sites has held */

/* Taken once, as a lazy binding must not be resolved in a handler. */
static unsigned int (*line_no)(const void *iseq, size_t position);

/* What a reader from outside has copied, while the thread went on. */
enum { EARLY = 8 }; /* frames next to the leaf that are copied with what they point to before anything else */
typedef struct {
    const VALUE *context;
    bool in_place;            /* the stack cannot go away: what is not copied may be read where it stands */
    size_t frame_words;
    VALUE *frames;            /* control frames, leaf first */
    const VALUE *env_of[EARLY];
    VALUE env[EARLY][3];
    bool sure[EARLY];         /* that environment is the frame's: it had not gone, nor its caller moved on, when both were copied */
    const VALUE *from, *to;   /* values that were copied */
    VALUE *values;
} snapshot;

typedef struct {
    const VALUE *base, *end, *cfp;
    const snapshot *copy; /* NULL: the calling thread's own stack */
} vm_stack;

/* Once: it may be another when it is looked at again. */
#define LOAD(word) (*(const volatile VALUE *)&(word))

/* A handler may find the top-most frame half pushed: a new frame's words may be written in any order. The frames below are
 * complete, because the thread has been running on top of them. So a word of the top-most frame is followed out of the VM
 * stack only where pw_readable says that something is there. */
static bool
pointer_like(VALUE word)
{
    return word >= 4096 && word < (VALUE)1 << 56 && word % sizeof(VALUE) == 0;
}

/* Where ep[-2] to ep[0] may be read, as a pointer like ep, or NULL. Environments lie in the VM stack or, escaped, in the heap.
 * `room` is for those that have to be copied. */
static const VALUE *
env_at(const vm_stack *s, const VALUE *ep, bool top, VALUE room[3])
{
    if (!pointer_like((VALUE)ep)) return NULL;
    bool inside = ep >= s->base + 2 && ep < s->end;
    const snapshot *copy = s->copy;
    if (!copy) return inside || !top || (pw_readable((uintptr_t)(ep - 2)) && pw_readable((uintptr_t)ep)) ? ep : NULL;
    if (inside && copy->in_place) return ep;
    if (inside && ep - 2 >= copy->from && ep < copy->to) return copy->values + (ep - copy->from);
    return pw_peek(ep - 2, room, 3 * sizeof(VALUE)) ? room + 2 : NULL;
}

/* The same for the environment of a control frame. */
static const VALUE *
env_of(const vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top, VALUE room[3])
{
    size_t n = (size_t)(cfp - s->cfp) / PW_CFP_WORDS;
    if (s->copy && cfp >= s->cfp && n < EARLY && s->copy->env_of[n] == ep) return &s->copy->env[n][2];
    return env_at(s, ep, top, room);
}

/* Where a control frame's words may be read. */
static const VALUE *
frame_at(const vm_stack *s, const VALUE *cfp)
{
    size_t n = (size_t)(cfp - s->cfp);
    return s->copy && n < s->copy->frame_words ? s->copy->frames + n : cfp;
}

static int
imemo_type(const vm_stack *s, VALUE word, bool top)
{
    if (!pointer_like(word)) return -1;
    if (s->copy) return pw_object_look(word)->imemo;
    if (top && !pw_known(word) && !pw_readable(word)) return -1;
    return pw_imemo_of_flags(*(const VALUE *)word);
}

/* As rb_vm_frame_method_entry, and PW_DOUBTFUL where words make no sense. (While an environment escapes, the place it leaves
 * holds an object where the flags were.) */
static VALUE
method_entry(const vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top)
{
    VALUE room[3];
    const VALUE *env = env_of(s, cfp, ep, top, room);
    for (int hops = 0; hops < 256 && env; hops++) {
        VALUE flags = LOAD(env[PW_EP_FLAGS]), word = LOAD(env[PW_EP_ME_CREF]);
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
        env = env_at(s, pw_parent_ep(LOAD(env[PW_EP_SPECVAL])), top, room);
    }
    return PW_DOUBTFUL;
}

/* Was its environment, if that was copied, its own? */
static bool
sure_of(const vm_stack *s, const VALUE *cfp)
{
    size_t n = (size_t)(cfp - s->cfp) / PW_CFP_WORDS;
    return !s->copy || cfp < s->cfp || n >= EARLY || !s->copy->env_of[n] || s->copy->sure[n];
}

/* Of a C function on top: did it stay until all that tells of it was copied? */
static bool
leaf_stayed(const vm_stack *s, const VALUE *cfp)
{
    return !s->copy || cfp != s->cfp || (s->copy->sure[0] && (s->copy->env_of[0] || !s->copy->in_place));
}

/* Is it the code of that method itself, by the method's definition? A word that is wrong for whatever reason is no iseq of this address. */
static bool
is_code_of(VALUE entry, VALUE iseq)
{
    VALUE definition, code;
    if (entry == PW_DOUBTFUL || !pw_peek((const VALUE *)entry + PW_ME_DEF, &definition, sizeof definition)) return false;
    return pw_peek((const VALUE *)definition + PW_DEF_CODE, &code, sizeof code) && code == iseq;
}

static int
method_type(VALUE entry, bool top)
{
    VALUE definition = ((const VALUE *)entry)[PW_ME_DEF];
    if (!pointer_like(definition) || (top && !pw_known(entry) && !pw_readable(definition))) return -1;
    return pw_method_type_of(*(const uint32_t *)definition);
}

static int
line_of(const vm_stack *s, VALUE iseq, VALUE pc)
{
    VALUE encoded, shadow[8] = {0};
    uint32_t size;
    if (s->copy) { /* its line table is not in the heap: an iseq of our own leads there without touching the object */
        const pw_object_seen *seen = pw_object_look(iseq);
        if (seen->imemo != PW_IMEMO_ISEQ) return 0;
        encoded = seen->encoded, size = seen->size;
        shadow[PW_ISEQ_BODY] = seen->body;
        iseq = (VALUE)shadow;
    }
    else {
        const VALUE *body = (const VALUE *)((const VALUE *)iseq)[PW_ISEQ_BODY];
        if (!pointer_like((VALUE)body)) return 0;
        encoded = body[PW_BODY_ENCODED], size = ((const uint32_t *)body)[PW_BODY_SIZE];
    }
    if (!pointer_like(encoded)) return 0;
    /* Compiled code saves its pc before calls only: in the top-most frame an older one may stand, even another iseq's, or none.
     * Then the line is the first one with code. */
    bool within = pc >= encoded && pc <= encoded + size * sizeof(VALUE);
    size_t position = within ? (pc - encoded) / sizeof(VALUE) : 0;
    return (int)line_no((const void *)iseq, position ? position - 1 : 0);
}

/* The C function that was called last from the site at that address, by the site's cache; 0: that is no site of this code, or no C function. */
static VALUE
c_function_of_site(VALUE site, VALUE sites, uint32_t count)
{
    VALUE cache, words[PW_CACHE_METHOD + 1];
    size_t bytes = PW_CALL_DATA_WORDS * sizeof(VALUE);
    if (site < sites || site - sites >= count * bytes || (site - sites) % bytes != 0) return 0;
    if (!pw_peek((const VALUE *)site + PW_CALL_DATA_CACHE, &cache, sizeof cache) || !pointer_like(cache)) return 0;
    if (!pw_peek((const void *)cache, words, sizeof words) || pw_imemo_of_flags(words[0]) != PW_IMEMO_CALLCACHE) return 0;
    VALUE entry = words[PW_CACHE_METHOD];
    return pointer_like(entry) && pw_object_look(entry)->method == PW_METHOD_CFUNC ? entry : 0;
}

/* The C function that code at `pc` calls, or called shortly before; 0: not known. An operand of the instruction before pc is the site. */
static VALUE
c_function_called(VALUE iseq, VALUE pc)
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

/* Of a C function on top, of which what says so had gone, its caller still knows which it was: the caller's pc stands right next
 * to that frame, and the place that names the function elsewhere. */
static VALUE
c_function_by_caller(const vm_stack *s, const VALUE *cfp)
{
    const snapshot *copy = s->copy;
    if (!sites_known || leaf_stayed(s, cfp) || copy->frame_words < 2 * PW_CFP_WORDS) return 0;
    const VALUE *caller = copy->frames + PW_CFP_WORDS;
    return caller[PW_CFP_ISEQ] ? c_function_called(caller[PW_CFP_ISEQ], caller[PW_CFP_PC]) : 0;
}

static void
look_at_c_function(const vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top, pw_frame_seen *seen)
{
    VALUE entry = method_entry(s, cfp, ep, top);
    if (!entry || entry == PW_DOUBTFUL) return;
    int type = s->copy ? pw_object_look(entry)->method : method_type(entry, top);
    if (type == PW_METHOD_CFUNC) seen->frame = entry;
}

/* A frame without a pc. Compiled code (YJIT, ZJIT) writes none into the frame of a method or block that it calls: the word is 0 if
 * a C function's frame was there before. (rb_profile_frames leaves such a frame out.) The interpreter has others without a pc, in
 * which no Ruby code runs: an extension's Init function's. */
static bool
is_of_compiled_code(const vm_stack *s, const VALUE *cfp, const VALUE *ep, bool top)
{
    VALUE room[3];
    const VALUE *env = env_of(s, cfp, ep, top, room);
    VALUE flags = env ? LOAD(env[PW_EP_FLAGS]) : 0;
    return pw_env_flags_plausible(flags) && pw_frame_is_method_or_block(flags);
}

/* Finds out what a control frame is. */
static void
look(const vm_stack *s, const VALUE *cfp, bool top, bool want_owner, pw_frame_seen *seen)
{
    const VALUE *words = frame_at(s, cfp);
    VALUE iseq = LOAD(words[PW_CFP_ISEQ]), pc = LOAD(words[PW_CFP_PC]);
    const VALUE *ep = (const VALUE *)LOAD(words[PW_CFP_EP]);
    *seen = (pw_frame_seen){0};
    bool known = iseq && pw_known(iseq); /* a block's C function is not: it is never listed */
    if (!iseq && (seen->frame = c_function_by_caller(s, cfp))) return;
    if (!known) {
        VALUE room[3];
        const VALUE *env = env_of(s, cfp, ep, top, room);
        VALUE flags = env ? LOAD(env[PW_EP_FLAGS]) : 0;
        if (!pw_env_flags_plausible(flags)) return;
        if (flags & PW_FRAME_C) {
            look_at_c_function(s, cfp, ep, top, seen);
            return;
        }
    }
    if ((!pc && PW_RUBY_FRAME_HAS_PC && !is_of_compiled_code(s, cfp, ep, top)) || imemo_type(s, iseq, top) != PW_IMEMO_ISEQ) return;
    seen->frame = iseq;
    seen->line = line_of(s, iseq, pc);
    if (known && !want_owner) return;
    seen->owner = method_entry(s, cfp, ep, top);
    if (seen->owner && !sure_of(s, cfp) && !is_code_of(seen->owner, iseq)) seen->owner = PW_DOUBTFUL;
}

static pw_frame_key
key_of(const vm_stack *s, const VALUE *cfp)
{
    const VALUE *words = frame_at(s, cfp);
    pw_frame_key key = {LOAD(words[PW_CFP_ISEQ]), LOAD(words[PW_CFP_EP]), LOAD(words[PW_CFP_PC])};
    if (key.iseq) return key;
    /* Every C function's frame would look alike: its method entry stands in its environment. */
    VALUE room[3];
    const VALUE *env = env_of(s, cfp, (const VALUE *)key.ep, cfp == s->cfp, room);
    key.place = env ? LOAD(env[PW_EP_ME_CREF]) : 0;
    return key;
}

/* From the first words of an execution context. */
static bool
stack_of(const VALUE *ec, vm_stack *s)
{
    VALUE base = ec[PW_EC_STACK], words = ec[PW_EC_STACK_WORDS], cfp = ec[PW_EC_CFP];
    if (!pointer_like(base) || !pointer_like(cfp) || words > (VALUE)1 << 32) return false;
    VALUE end = base + words * sizeof(VALUE);
    if (cfp < base || cfp > end - PW_ROOT_FRAMES * PW_CFP_BYTES || (end - cfp) % PW_CFP_BYTES != 0) return false;
    *s = (vm_stack){(const VALUE *)base, (const VALUE *)end, (const VALUE *)cfp, NULL};
    return true;
}

static bool
find_stack(const VALUE *ec, vm_stack *s)
{
    return pointer_like((VALUE)ec) && stack_of(ec, s);
}

static const VALUE *
context_of(const void *thread)
{
    return *(const VALUE *const volatile *)((const uint8_t *)thread + PW_THREAD_EC);
}

VALUE
pw_walk_owner(const void *ec, const VALUE *cfp)
{
    vm_stack s;
    VALUE owner = find_stack(ec, &s) ? method_entry(&s, cfp, (const VALUE *)cfp[PW_CFP_EP], false) : 0;
    return owner == PW_DOUBTFUL ? 0 : owner;
}

void
pw_walk_frames(const void *ec, const VALUE *leaf, void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data)
{
    vm_stack s;
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
    return pw_walk_context(w, context_of(w->thread));
}

static uint32_t
walk(pw_walk *w, const vm_stack *s)
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
    if (cut != w->cut) same = 0; /* what stands for the part left out comes or goes */
    w->cut = cut;
    w->depth = depth;
    return same;
}

uint32_t
pw_walk_context(pw_walk *w, const void *context)
{
    vm_stack s;
    if (find_stack(context, &s)) return walk(w, &s);
    return w->depth = 0;
}

/* ---- from outside ---- */

enum { MOST_VALUES = 1 << 15 }; /* words of a fiber's values that are copied at once; others one by one */
static snapshot taken;

static bool
copies_have_room(uint32_t frames)
{
    static size_t room;
    if (room < frames) {
        free(taken.frames);
        free(taken.values);
        room = 0;
        taken.frames = malloc(frames * PW_CFP_BYTES);
        taken.values = malloc(MOST_VALUES * sizeof(VALUE));
        if (!taken.frames || !taken.values) return false;
        room = frames;
    }
    return true;
}

/* How deep the stack is and what is on top stand in places that the thread's core writes all the time: read one after the other, each from
 * that core's cache, they are 0.2 us apart, in which short calls come and go. Addresses known beforehand are read at once: so the frames
 * around the top of the look before are read together with where the top is now. (To look first where it is would not do: a core from
 * which that line was taken stands still at its next call or return, so that code that calls much would be seen too often.) */
enum { NEAR = 6 }; /* frames to each side */
typedef struct {
    const VALUE *from, *to;
    VALUE words[2 * NEAR * PW_CFP_WORDS];
} frames_near;

static void
read_together(const pw_walk *w, VALUE head[PW_EC_WORDS], frames_near *near)
{
    const VALUE *context = taken.context, *from = NULL, *to = NULL;
    head[PW_EC_STACK] = LOAD(context[PW_EC_STACK]); /* gone when the thread has ended. The processor does not wait for the answer */
    if (w->top && head[PW_EC_STACK] == (VALUE)w->base) {
        from = w->top - w->base > NEAR * PW_CFP_WORDS ? w->top - NEAR * PW_CFP_WORDS : w->base;
        to = w->end - w->top > NEAR * PW_CFP_WORDS ? w->top + NEAR * PW_CFP_WORDS : w->end;
    }
    near->from = from, near->to = to;
    size_t n = (size_t)(to - from);
    head[PW_EC_CFP] = LOAD(context[PW_EC_CFP]);
    for (size_t i = 0; i < n; i++) near->words[i] = LOAD(from[i]);
    head[PW_EC_STACK_WORDS] = LOAD(context[PW_EC_STACK_WORDS]);
    atomic_thread_fence(memory_order_acquire);
}

/* The leaf and its caller, then what the leaf's environment says, and so on: of a C function that returns meanwhile, its caller soon
 * overwrites that. */
static void
copy_in_place(const vm_stack *s, const frames_near *near, bool every_env)
{
    size_t early = taken.frame_words < EARLY * PW_CFP_WORDS ? taken.frame_words : EARLY * PW_CFP_WORDS;
    size_t copied = 0;
    if (near->from && s->cfp >= near->from) {
        for (; copied < early && s->cfp + copied < near->to; copied++) taken.frames[copied] = near->words[s->cfp + copied - near->from];
    }
    for (size_t n = 0; n < early / PW_CFP_WORDS; n++) {
        const VALUE *cfp = s->cfp + n * PW_CFP_WORDS;
        const VALUE *copy = taken.frames + n * PW_CFP_WORDS;
        size_t to = (n + 2) * PW_CFP_WORDS < early ? (n + 2) * PW_CFP_WORDS : early;
        for (; copied < to; copied++) taken.frames[copied] = LOAD(s->cfp[copied]);
        VALUE iseq = copy[PW_CFP_ISEQ];
        if (!every_env && iseq && pw_known(iseq)) continue; /* each line read here is one that the thread's core has to get back */
        const VALUE *ep = (const VALUE *)copy[PW_CFP_EP];
        if (!pointer_like((VALUE)ep) || ep < s->base + 2 || ep >= s->end) continue;
        for (int i = 0; i < 3; i++) taken.env[n][i] = LOAD(ep[i - 2]);
        taken.env_of[n] = ep;
        atomic_thread_fence(memory_order_acquire);
        bool there = LOAD(taken.context[PW_EC_CFP]) <= (VALUE)cfp;
        taken.sure[n] = there && LOAD(cfp[PW_CFP_ISEQ]) == iseq && LOAD(cfp[PW_CFP_EP]) == (VALUE)ep;
        if (!iseq && copied > (n + 1) * PW_CFP_WORDS) taken.sure[n] &= LOAD(cfp[PW_CFP_WORDS + PW_CFP_PC]) == copy[PW_CFP_WORDS + PW_CFP_PC];
    }
    memcpy(taken.frames + early, s->cfp + early, (taken.frame_words - early) * sizeof(VALUE));
}

static bool
copy_by_kernel(const vm_stack *s)
{
    if (!pw_peek(s->cfp, taken.frames, taken.frame_words * sizeof(VALUE))) return false;
    const VALUE *to = (const VALUE *)taken.frames[PW_CFP_SP];
    const VALUE *from = (const VALUE *)taken.frames[taken.frame_words - PW_CFP_WORDS + PW_CFP_EP] - 2; /* the root's, if not in the heap */
    if (to < s->base || to > s->cfp) to = s->cfp;
    if (from < s->base || from > to) from = s->base;
    if (to - from > MOST_VALUES) from = to - MOST_VALUES;
    if (!pw_peek(from, taken.values, (size_t)(to - from) * sizeof(VALUE))) return false;
    taken.from = from, taken.to = to;
    VALUE cfp, again[2 * PW_CFP_WORDS];
    size_t bytes = taken.frame_words < 2 * PW_CFP_WORDS ? PW_CFP_BYTES : sizeof again;
    const pw_piece pieces[2] = {{taken.context + PW_EC_CFP, &cfp, sizeof cfp}, {s->cfp, again, bytes}};
    if (!pw_peek_both(pieces)) return false;
    taken.sure[0] = cfp <= (VALUE)s->cfp && memcmp(again, taken.frames, bytes) == 0;
    return true;
}

/* Is the thread still on that stack, and was the frame above the early ones left alone? Then it never returned that far while
 * we looked, so that all below was as it is; and the early ones were copied within some dozens of nanoseconds. Looks at which the
 * thread moves on above are good: to refuse them would be to prefer the code that moves least. */
static bool
holds_still(const void *thread, const vm_stack *s)
{
    if (context_of(thread) != taken.context) return false;
    enum { N = PW_CFP_PC > PW_CFP_ISEQ ? PW_CFP_PC + 1 : PW_CFP_ISEQ + 1 };
    size_t at = (size_t)EARLY * PW_CFP_WORDS;
    VALUE base = (VALUE)s->base, words[N];
    bool whole = taken.frame_words <= at;
    if (taken.in_place) { /* this context keeps its stack */
        for (size_t i = 0; i < N && !whole; i++) words[i] = LOAD(s->cfp[at + i]);
    }
    else {
        const pw_piece pieces[2] = {{taken.context + PW_EC_STACK, &base, sizeof base}, {s->cfp + at, words, whole ? 0 : sizeof words}};
        if (!pw_peek_both(pieces)) return false;
    }
    if (base != (VALUE)s->base) return false;
    return whole || (words[PW_CFP_PC] == taken.frames[at + PW_CFP_PC] && words[PW_CFP_ISEQ] == taken.frames[at + PW_CFP_ISEQ]);
}

pw_outcome
pw_walk_outside(pw_walk *w, uint32_t *same)
{
    vm_stack s;
    VALUE head[PW_EC_WORDS];
    frames_near near = {0};
    *same = w->depth;
    if (!copies_have_room(w->room)) return PW_NOTHING;
    const VALUE *context = context_of(w->thread);
    if (!context) return w->depth = 0, PW_NOTHING;
    taken.context = context;
    taken.in_place = context == w->root;
    for (int i = 0; i < EARLY; i++) taken.env_of[i] = NULL;
    taken.from = taken.to = NULL;
    if (taken.in_place) read_together(w, head, &near);
    else if (!pw_peek(context, head, sizeof head)) return PW_TORN;
    if (!head[PW_EC_STACK]) return w->depth = 0, PW_NOTHING;
    if (!stack_of(head, &s)) return PW_TORN;
    if (taken.in_place) w->base = s.base, w->end = s.end, w->top = s.cfp;

    size_t count = (size_t)(s.end - s.cfp), most = (size_t)w->room * PW_CFP_WORDS;
    taken.frame_words = count < most ? count : most;
    if (taken.frame_words && taken.in_place) copy_in_place(&s, &near, w->every_owner);
    else if (taken.frame_words && !copy_by_kernel(&s)) return PW_TORN;
    s.copy = &taken;
    *same = walk(w, &s);
    return holds_still(w->thread, &s) ? PW_SEEN : PW_TORN;
}

void
pw_walk_find_root(pw_walk *w)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    if (!w->thread || w->root || pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0 && here - (uintptr_t)lowest < size) w->root = context_of(w->thread);
    pthread_attr_destroy(&attributes);
}

bool pw_walk_own(void) { return !refusal; }

const void *
pw_walk_context_of(VALUE thread)
{
    const uint8_t *data = RTYPEDDATA_DATA(thread);
    return data && *(const VALUE *)(data + PW_THREAD_SELF) == thread ? context_of(data) : NULL;
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
    vm_stack s;
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

/* ---- self-test ---- */

static const char *
differ(const pw_walk *w, const VALUE *frames, const int *lines, int n)
{
    if ((int)pw_walk_listed(w, w->depth) != n) return "number of frames";
    for (uint32_t i = w->depth, at = 0; i-- > 0;) {
        const pw_frame_seen *seen = &w->seen[i];
        if (!seen->frame) continue;
        if (seen->frame != frames[at] && seen->owner != frames[at]) return "frames";
        if (seen->line != lines[at]) return "lines";
        at++;
    }
    return NULL;
}

/* Sees only what has changed since the last test, as the handler does. Unused while another Ractor tests. */
static pw_walk continued = {.every_owner = true};
static atomic_flag testing = ATOMIC_FLAG_INIT;

static const char *
test_stack(VALUE thread)
{
    enum { ROOM = 4096 };
    static const char no_memory[] = "no memory";
    const void *data = RTYPEDDATA_DATA(thread);
    if (!data || *(const VALUE *)((const uint8_t *)data + PW_THREAD_SELF) != thread) return "thread";
    pw_walk w = {.thread = data, .every_owner = true};
    void *memory = calloc(1, pw_walk_bytes(ROOM)), *kept = NULL;
    VALUE *frames = malloc(ROOM * (sizeof(VALUE) + sizeof(int)));
    int *lines = (int *)(frames + ROOM);
    const char *difference = memory && frames ? NULL : no_memory;
    if (!difference) {
        pw_walk_place(&w, memory, ROOM);
        pw_walk_stack(&w);
        int n = rb_profile_frames(0, ROOM, frames, lines);
        if (!w.cut && n < ROOM) difference = differ(&w, frames, lines, n);
        if (!difference && !atomic_flag_test_and_set(&testing)) {
            if (!continued.keys && (kept = calloc(1, pw_walk_bytes(ROOM)))) pw_walk_place(&continued, kept, ROOM);
            if (continued.keys) {
                continued.thread = data;
                pw_walk_stack(&continued);
                if (!continued.cut && n < ROOM && differ(&continued, frames, lines, n)) difference = "what changed";
            }
            atomic_flag_clear(&testing);
        }
    }
    free(memory);
    free(frames);
    return difference;
}

/* One at a time: `testing`. */
static struct { pw_walk walk; pw_outcome outcome; } outside;

static void *
read_from_outside(void *unused)
{
    uint32_t same;
    pw_reader_lock();
    outside.outcome = pw_walk_outside(&outside.walk, &same);
    pw_reader_unlock();
    return NULL;
}

/* Another thread reads the calling one's stack: where it stands, if it may, and through the kernel. */
static const char *
test_outside(VALUE thread)
{
    enum { ROOM = 1024 };
    const char *difference = NULL;
    VALUE *frames = malloc(ROOM * (sizeof(VALUE) + sizeof(int)));
    void *memory = calloc(1, pw_walk_bytes(ROOM));
    int *lines = (int *)(frames + ROOM), n = frames ? rb_profile_frames(0, ROOM, frames, lines) : ROOM;
    bool mine = memory && n < ROOM && !atomic_flag_test_and_set(&testing);
    for (int way = 0; way < 2 && mine && !difference; way++) {
        pthread_t reader;
        outside.walk = (pw_walk){.every_owner = true, .thread = RTYPEDDATA_DATA(thread)};
        outside.outcome = PW_NOTHING;
        pw_walk_place(&outside.walk, memory, ROOM);
        if (way == 0) pw_walk_find_root(&outside.walk);
        if (pw_start_quiet_thread(&reader, read_from_outside) != 0) difference = "no thread to read from";
        else pthread_join(reader, NULL);
        if (difference) break;
        if (outside.outcome != PW_SEEN) difference = "no stack seen";
        else if (!outside.walk.cut) difference = differ(&outside.walk, frames, lines, n);
    }
    if (mine) atomic_flag_clear(&testing);
    free(memory);
    free(frames);
    return difference;
}

/* site_self_test -> true when the site of the call that is being made names this method */
static VALUE
native_site_self_test(VALUE self)
{
    vm_stack s;
    bool right = false;
    pw_reader_lock();
    if (pw_peek_init() == 0 && find_stack(context_of(RTYPEDDATA_DATA(rb_thread_current())), &s)) {
        VALUE entry = method_entry(&s, s.cfp, (const VALUE *)s.cfp[PW_CFP_EP], false);
        const VALUE *caller = s.cfp + PW_CFP_WORDS;
        right = entry && entry == c_function_called(caller[PW_CFP_ISEQ], caller[PW_CFP_PC]);
    }
    pw_reader_unlock();
    return right ? Qtrue : Qfalse;
}

/* outside_self_test -> the same for reading from outside */
static VALUE
native_outside_self_test(VALUE self)
{
    pw_reader_lock();
    int error = pw_peek_init();
    pw_reader_unlock();
    const char *difference = error ? "process_vm_readv is refused" : line_no ? test_outside(rb_thread_current()) : "no rb_iseq_line_no";
    return difference ? rb_str_new_cstr(difference) : Qnil;
}

/* walk_self_test -> nil when both walks list the same for the calling stack, or a String: what differs, or why there is no
 * own walk */
static VALUE
native_walk_self_test(VALUE self)
{
    const char *difference = line_no ? test_stack(rb_thread_current()) : "no rb_iseq_line_no";
    return difference ? rb_str_new_cstr(difference) : Qnil;
}

/* Stacks of all kinds of frames, and how many tests they make. Nothing is raised: $DEBUG would tell. */
static const char lesson[] =
    "test = :%s\n"
    "results = []\n"
    "teacher = Object.new\n"
    "teacher.instance_variable_set(:@results, results)\n"
    "teacher.instance_variable_set(:@test, test)\n"
    "class << teacher\n"
    "  def ask = @results << Pitwall::Native.public_send(@test)\n"
    "  def handed(n, &block) = n.zero? ? yield(n) : handed(n - 1) { |m| block.call(m) }\n"
    "  def nested = [1].each { |a| [a].map { |b| { b => 1 }.each_pair { ask } } }\n"
    "  def by_c = [2, 1].sort_by { |x| ask; x }.inject { |x, y| ask; x + y }\n"
    "  def lazily = [1, 2].each_slice(1).each_with_index.map { ask }\n"
    "  def evaluated = eval('ask; [1].each { ask }')\n"
    "  def escaped\n"
    "    x = 0\n"
    "    proc { x += 1; [x].each { ask } }\n"
    "  end\n"
    "  def matched = ('a' =~ /a/) && ask && $~\n"
    "  def ensured\n"
    "    yield\n"
    "  ensure\n"
    "    ask\n"
    "  end\n"
    "  define_method(:defined) { |&block| [1].each { ask; block.call } }\n"
    "end\n"
    "teacher.ask\n"
    "teacher.handed(3) { teacher.ask }\n"
    "teacher.nested\n"
    "teacher.by_c\n"
    "teacher.lazily\n"
    "teacher.evaluated\n"
    "teacher.escaped.call\n"
    "teacher.matched\n"
    "catch(:out) { teacher.ensured { throw :out } }\n"
    "teacher.defined { teacher.nested }\n"
    "teacher.instance_eval { ask }\n"
    "Class.new { teacher.ask }\n"
    "Fiber.new { teacher.nested; Fiber.yield; teacher.ask }.tap(&:resume).resume\n"
    "Enumerator.new { |y| y << teacher.ask }.next\n"
    "results.all?(&:nil?) && results.size\n";
enum { LESSON_TESTS = 20 };

/* Sites of calls without and with a block, alone and next to others. */
static const char sites_lesson[] =
    "native = Pitwall::Native\n"
    "asker = Object.new\n"
    "asker.instance_variable_set(:@native, native)\n"
    "class << asker\n"
    "  def plainly = @native.site_self_test\n"
    "  def within = [1 + @native.to_s.size, @native.site_self_test, @native.hash].include?(true)\n"
    "  def with_block = @native.site_self_test { 1 }\n"
    "  def with_splat(*none) = @native.site_self_test(*none)\n"
    "  def in_block = [1].all? { @native.site_self_test }\n"
    "end\n"
    "2.times.all? { asker.plainly && asker.within && asker.with_block && asker.with_splat && asker.in_block && native.site_self_test }\n";

static VALUE
take_sites_lesson(VALUE unused)
{
    return rb_funcall(rb_module_new(), rb_intern("module_eval"), 1, rb_str_new_cstr(sites_lesson));
}

static VALUE
take_lesson(VALUE test)
{
    VALUE module = rb_module_new(), text = rb_sprintf(lesson, (const char *)test);
    return rb_funcall(module, rb_intern("module_eval"), 1, text);
}

static VALUE
result_of(VALUE (*take)(VALUE), VALUE test)
{
    int error = 0;
    VALUE saved = rb_errinfo(), result = rb_protect(take, test, &error);
    if (error) rb_set_errinfo(saved);
    return error ? Qnil : result;
}

static bool passes(const char *test) { return result_of(take_lesson, (VALUE)test) == INT2FIX(LESSON_TESTS); }

static void
prove(void)
{
    line_no = rb_iseq_line_no;
    if (!line_no) refusal = "this Ruby hides rb_iseq_line_no";
    else refusal = passes("walk_self_test") ? NULL : "the self-test at load saw other stacks than Ruby's own";
}

const char *
pw_outside_refusal(void)
{
    static int proven; /* 1: yes, -1: no */
    static char text[80];
    if (refusal) return refusal;
    if (pw_other_gc()) return "this garbage collector does not tell when it runs";
    pw_reader_lock();
    int error = pw_peek_init();
    pw_reader_unlock();
    if (error) {
        snprintf(text, sizeof text, "process_vm_readv is refused (%s)", strerror(error));
        return text;
    }
    if (!proven) {
        proven = passes("outside_self_test") ? 1 : -1;
        sites_known = result_of(take_sites_lesson, Qnil) == Qtrue;
    }
    return proven > 0 ? NULL : "a trial read other stacks than Ruby's own";
}

#else /* unknown layout */

void pw_walk_aim(pw_walk *w, VALUE thread) { w->thread = NULL; }
void pw_walk_find_root(pw_walk *w) {}
pw_outcome pw_walk_outside(pw_walk *w, uint32_t *same) { return *same = w->depth = 0, PW_NOTHING; }
const char *pw_outside_refusal(void) { return refusal; }
VALUE pw_walk_owner(const void *ec, const VALUE *cfp) { return 0; }
void pw_walk_frames(const void *ec, const VALUE *leaf, void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data) {}
uint32_t pw_walk_stack(pw_walk *w) { return w->depth = 0; }
bool pw_walk_own(void) { return false; }
const void *pw_walk_context_of(VALUE thread) { return NULL; }
uint32_t pw_walk_context(pw_walk *w, const void *context) { return w->depth = 0; }
const VALUE *pw_walk_innermost(const void *context, const VALUE *from) { return NULL; }
bool pw_walk_find(bool (*wanted)(VALUE iseq, void *data), void *data, uint32_t most, pw_frame_seen *found) { return false; }
bool pw_walk_look(const void *context, const VALUE *control_frame, pw_frame_seen *seen) { return false; }
bool pw_method_is_ruby(VALUE entry) { return false; }
bool pw_frame_is_iseq(VALUE frame) { return false; }
static void prove(void) { refusal = PW_LAYOUT_UNKNOWN; }
static VALUE native_walk_self_test(VALUE self) { return rb_str_new_cstr(refusal); }

static VALUE native_outside_self_test(VALUE self) { return native_walk_self_test(self); }
static VALUE native_site_self_test(VALUE self) { return Qfalse; }

#endif

bool pw_walk_in_use(void) { return !refusal; }
const char *pw_walk_refusal(void) { return refusal; }

/* walk -> "own" or "rb_profile_frames": how stacks are taken */
static VALUE
native_walk(VALUE self)
{
    return rb_str_new_cstr(refusal ? "rb_profile_frames" : "own");
}

/* walk_refusal -> nil, or a String: why Pitwall does not walk this Ruby's stacks itself */
static VALUE
native_walk_refusal(VALUE self)
{
    return refusal ? rb_str_new_cstr(refusal) : Qnil;
}

/* outside_refusal -> nil, or a String: why stacks can't be read from outside here */
static VALUE
native_outside_refusal(VALUE self)
{
    const char *why = pw_outside_refusal();
    return why ? rb_str_new_cstr(why) : Qnil;
}

void
Init_pitwall_walk(VALUE native)
{
    rb_define_singleton_method(native, "walk", native_walk, 0);
    rb_define_singleton_method(native, "walk_refusal", native_walk_refusal, 0);
    rb_define_singleton_method(native, "walk_self_test", native_walk_self_test, 0);
    rb_define_singleton_method(native, "outside_self_test", native_outside_self_test, 0);
    rb_define_singleton_method(native, "site_self_test", native_site_self_test, 0);
    rb_define_singleton_method(native, "outside_refusal", native_outside_refusal, 0);
    prove();
}

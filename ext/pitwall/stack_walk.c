#include "stack_walk.h"
#include "known_frames.h"
#include "vm_layout.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic VALUE pw_known_slots[PW_KNOWN_SLOTS];

static bool in_use; /* the self-test has held */

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

/* Hidden in no Ruby we know, but not in a header; taken once, as a lazy binding must not be resolved in a handler. */
extern unsigned int rb_iseq_line_no(const void *iseq, size_t position) __attribute__((weak));
static unsigned int (*line_no)(const void *iseq, size_t position);

typedef struct { const VALUE *base, *end, *cfp; } vm_stack;

/* A new frame's words may be written in any order, and in a handler the top-most may be half there. What lies below it is complete:
 * the thread itself has been running on top of it. Therefore words of the top-most frame are never
 * followed out of the VM stack before the kernel has said that something is there. (An invalid `how` makes it read
 * the set and refuse.) */
static bool
mapped(const void *address)
{
    return syscall(SYS_rt_sigprocmask, ~0, address, NULL, (size_t)8) == 0 || errno != EFAULT;
}

static bool
pointer_like(VALUE word)
{
    return word >= 4096 && word < (VALUE)1 << 56 && word % sizeof(VALUE) == 0;
}

/* May ep[-2] to ep[0] be read? Environments lie in the VM stack or, escaped, in the heap. */
static bool
env_readable(const vm_stack *s, const VALUE *ep, bool top)
{
    if (!pointer_like((VALUE)ep)) return false;
    if (ep >= s->base + 2 && ep < s->end) return true;
    return !top || (mapped(ep - 2) && mapped(ep));
}

static int
imemo_type(VALUE word, bool top)
{
    if (!pointer_like(word)) return -1;
    if (top && !pw_known(word) && !mapped((const void *)word)) return -1;
    return pw_imemo_of_flags(*(const VALUE *)word);
}

/* As rb_vm_frame_method_entry; 0 also where words make no sense. (While an environment escapes, the place it leaves holds
 * an object where the flags were.) */
static VALUE
method_entry(const vm_stack *s, const VALUE *ep, bool top)
{
    for (int hops = 0; hops < 256; hops++) {
        if (!env_readable(s, ep, top)) return 0;
        VALUE flags = ep[PW_EP_FLAGS], word = ep[PW_EP_ME_CREF];
        if (!pw_env_flags_plausible(flags)) return 0;
        int type = word ? imemo_type(word, top) : -1;
        if (type == PW_IMEMO_MENT) return word;
        if (flags & PW_ENV_LOCAL) {
            if (type != PW_IMEMO_SVAR) return 0;
            word = ((const VALUE *)word)[PW_SVAR_CREF_OR_ME];
            return imemo_type(word, top) == PW_IMEMO_MENT ? word : 0;
        }
        ep = pw_parent_ep(ep[PW_EP_SPECVAL]);
    }
    return 0;
}

static int
method_type(VALUE entry, bool top)
{
    VALUE definition = ((const VALUE *)entry)[PW_ME_DEF];
    if (!pointer_like(definition) || (top && !pw_known(entry) && !mapped((const void *)definition))) return -1;
    return pw_method_type_of(*(const uint32_t *)definition);
}

static int
line_of(VALUE iseq, VALUE pc)
{
    const VALUE *body = (const VALUE *)((const VALUE *)iseq)[PW_ISEQ_BODY];
    if (!pointer_like((VALUE)body)) return 0;
    VALUE encoded = body[PW_BODY_ENCODED];
    uint32_t size = ((const uint32_t *)body)[1];
    /* Compiled code saves its pc now and then: in the top-most frame an older one may stand, even another iseq's. */
    if (!pointer_like(encoded) || pc < encoded || pc > encoded + size * sizeof(VALUE)) return 0;
    size_t position = (pc - encoded) / sizeof(VALUE);
    return (int)line_no((const void *)iseq, position ? position - 1 : 0);
}

static void
look_at_c_function(const vm_stack *s, const VALUE *ep, bool top, pw_frame_seen *seen)
{
    VALUE entry = method_entry(s, ep, top);
    if (entry && method_type(entry, top) == PW_METHOD_CFUNC) seen->frame = entry;
}

/* Finds out what a control frame is. */
static void
look(const vm_stack *s, const VALUE *cfp, bool top, bool want_owner, pw_frame_seen *seen)
{
    VALUE iseq = cfp[PW_CFP_ISEQ], pc = cfp[PW_CFP_PC];
    const VALUE *ep = (const VALUE *)cfp[PW_CFP_EP];
    *seen = (pw_frame_seen){0};
    bool known = iseq && pw_known(iseq); /* a block's C function is not: it is never listed */
    if (!known) {
        if (!env_readable(s, ep, top) || !pw_env_flags_plausible(ep[PW_EP_FLAGS])) return;
        if (ep[PW_EP_FLAGS] & PW_FRAME_C) {
            look_at_c_function(s, ep, top, seen);
            return;
        }
    }
    if ((!pc && PW_RUBY_FRAME_HAS_PC) || imemo_type(iseq, top) != PW_IMEMO_ISEQ) return;
    seen->frame = iseq;
    seen->line = line_of(iseq, pc);
    if (!known || want_owner) seen->owner = method_entry(s, ep, top);
}

static pw_frame_key
key_of(const vm_stack *s, const VALUE *cfp)
{
    pw_frame_key key = {cfp[PW_CFP_ISEQ], cfp[PW_CFP_EP], cfp[PW_CFP_PC]};
    if (key.iseq) return key;
    /* Every C function's frame would look alike: its method entry stands in its environment. */
    const VALUE *ep = (const VALUE *)key.ep;
    key.place = env_readable(s, ep, cfp == s->cfp) ? ep[PW_EP_ME_CREF] : 0;
    return key;
}

static bool
find_stack(const VALUE *ec, vm_stack *s)
{
    if (!pointer_like((VALUE)ec)) return false;
    VALUE base = ec[PW_EC_STACK], words = ec[PW_EC_STACK_WORDS], cfp = ec[PW_EC_CFP];
    if (!pointer_like(base) || !pointer_like(cfp) || words > (VALUE)1 << 32) return false;
    VALUE end = base + words * sizeof(VALUE);
    if (cfp < base || cfp > end - PW_ROOT_FRAMES * PW_CFP_BYTES || (end - cfp) % PW_CFP_BYTES != 0) return false;
    *s = (vm_stack){(const VALUE *)base, (const VALUE *)end, (const VALUE *)cfp};
    return true;
}

static const VALUE *
context_of(const void *thread)
{
    return *(const VALUE *const *)((const uint8_t *)thread + PW_THREAD_EC);
}

VALUE
pw_walk_owner(const void *ec, const VALUE *cfp)
{
    vm_stack s;
    return find_stack(ec, &s) ? method_entry(&s, (const VALUE *)cfp[PW_CFP_EP], false) : 0;
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

uint32_t
pw_walk_context(pw_walk *w, const void *context)
{
    vm_stack s;
    uint32_t before = w->depth, i = 0;
    w->depth = 0;
    if (!find_stack(context, &s)) return 0;
    uint32_t count = (uint32_t)((s.end - s.cfp) / PW_CFP_WORDS) - PW_ROOT_FRAMES;
    uint32_t cut = count > w->room ? count - w->room : 0, depth = count - cut;
    uint32_t limit = depth < before ? depth : before;
    const VALUE *cfp = s.end - (size_t)(PW_ROOT_FRAMES + cut + 1) * PW_CFP_WORDS;

    for (; i < limit; i++, cfp -= PW_CFP_WORDS) {
        const pw_frame_key *old = &w->keys[i];
        pw_frame_key key = key_of(&s, cfp);
        if (key.place != old->place || key.iseq != old->iseq || key.ep != old->ep) break;
    }
    uint32_t same = i, listed = pw_walk_listed(w, i);
    for (; i < depth; i++, cfp -= PW_CFP_WORDS) {
        pw_frame_key key = key_of(&s, cfp), *old = &w->keys[i];
        pw_frame_seen *seen = &w->seen[i];
        if (i >= before || key.place != old->place || key.iseq != old->iseq || key.ep != old->ep) {
            *old = key;
            look(&s, cfp, cfp == s.cfp && !w->settled, w->every_owner, seen);
            if (!seen->frame && cfp == s.cfp) old->ep = 0; /* half there, perhaps: look again */
        }
        seen->listed = listed += seen->frame != 0;
    }
    if (cut != w->cut) same = 0; /* what stands for the part left out comes or goes */
    w->cut = cut;
    w->depth = depth;
    return same;
}

bool pw_walk_own(void) { return in_use; }

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
    const uint8_t *data = in_use ? RTYPEDDATA_DATA(thread) : NULL;
    w->thread = data && *(const VALUE *)(data + PW_THREAD_SELF) == thread ? data : NULL;
}

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
    "results = []\n"
    "teacher = Object.new\n"
    "teacher.instance_variable_set(:@results, results)\n"
    "class << teacher\n"
    "  def ask = @results << Pitwall::Native.walk_self_test\n"
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

static VALUE
take_lesson(VALUE unused)
{
    VALUE module = rb_module_new();
    return rb_funcall(module, rb_intern("module_eval"), 1, rb_str_new_cstr(lesson));
}

static void
prove(void)
{
    line_no = rb_iseq_line_no;
    if (!line_no) return;
    int error = 0;
    VALUE saved = rb_errinfo(), passed = rb_protect(take_lesson, Qnil, &error);
    if (error) rb_set_errinfo(saved);
    else in_use = passed == INT2FIX(LESSON_TESTS);
}

#else /* unknown layout */

void pw_walk_aim(pw_walk *w, VALUE thread) { w->thread = NULL; }
VALUE pw_walk_owner(const void *ec, const VALUE *cfp) { return 0; }
void pw_walk_frames(const void *ec, const VALUE *leaf, void (*each)(const VALUE *cfp, const pw_frame_seen *seen, void *data), void *data) {}
uint32_t pw_walk_stack(pw_walk *w) { return w->depth = 0; }
bool pw_walk_own(void) { return false; }
const void *pw_walk_context_of(VALUE thread) { return NULL; }
uint32_t pw_walk_context(pw_walk *w, const void *context) { return w->depth = 0; }
const VALUE *pw_walk_innermost(const void *context, const VALUE *from) { return NULL; }
bool pw_walk_look(const void *context, const VALUE *control_frame, pw_frame_seen *seen) { return false; }
bool pw_method_is_ruby(VALUE entry) { return false; }
static void prove(void) {}

static VALUE
native_walk_self_test(VALUE self)
{
    return rb_str_new_cstr("the layout of this Ruby is not known");
}

#endif

bool pw_walk_in_use(void) { return in_use; }

/* walk -> "own" or "rb_profile_frames": how stacks are taken */
static VALUE
native_walk(VALUE self)
{
    return rb_str_new_cstr(in_use ? "own" : "rb_profile_frames");
}

void
Init_pitwall_walk(VALUE native)
{
    rb_define_singleton_method(native, "walk", native_walk, 0);
    rb_define_singleton_method(native, "walk_self_test", native_walk_self_test, 0);
    prove();
}

#include "vm/walk_tests.h"
#include "tools/quietly.h"
#include "vm/stack_walk.h"

#if PW_LAYOUT_RUBY

#include "tools/quiet_thread.h"
#include "vm/other_gc.h"
#include "vm/peek.h"
#include "vm/reader_lock.h"
#include "vm/vm_stack.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_lines; /* Ruby tells the line of an instruction */

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

/* Looks only at frames that have changed since the last test, as the handler does. Not used while another Ractor
 * tests. */
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

/* One test uses it at a time: `testing`. */
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

/* Another thread reads the calling thread's stack twice: in place, if that is allowed, and through the kernel. */
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

/* site_self_test -> true when the call site of the current call names this method */
static VALUE
native_site_self_test(VALUE self)
{
    pw_vm_stack s;
    bool right = false;
    const VALUE *ec = pw_context_of(RTYPEDDATA_DATA(rb_thread_current()));
    pw_reader_lock();
    if (pw_peek_init() == 0 && pw_vm_stack_of(ec, &s)) {
        VALUE entry = pw_walk_owner(ec, s.cfp);
        const VALUE *caller = s.cfp + PW_CFP_WORDS;
        right = entry && entry == pw_c_function_called(caller[PW_CFP_ISEQ], caller[PW_CFP_PC]);
    }
    pw_reader_unlock();
    return right ? Qtrue : Qfalse;
}

/* outside_self_test -> as walk_self_test, for reading from outside */
static VALUE
native_outside_self_test(VALUE self)
{
    pw_reader_lock();
    int error = pw_peek_init();
    pw_reader_unlock();
    const char *difference = error ? "process_vm_readv is refused" : has_lines ? test_outside(rb_thread_current()) : "no rb_iseq_line_no";
    return difference ? rb_str_new_cstr(difference) : Qnil;
}

/* walk_self_test -> nil when both walks list the same frames for the calling stack, or a String: the difference, or
 * why there is no own walk */
static VALUE
native_walk_self_test(VALUE self)
{
    const char *difference = has_lines ? test_stack(rb_thread_current()) : "no rb_iseq_line_no";
    return difference ? rb_str_new_cstr(difference) : Qnil;
}

/* Makes stacks of all kinds of frames. LESSON_TESTS is how many tests these stacks make. Nothing is raised, because
 * $DEBUG would report the exception. */
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

/* Call sites without and with a block, alone and next to other sites. */
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
    VALUE result;
    pw_attempt(take, test, &result);
    return result;
}

static bool passes(const char *test) { return result_of(take_lesson, (VALUE)test) == INT2FIX(LESSON_TESTS); }

static void
prove(void)
{
    has_lines = pw_walk_has_lines();
    if (!has_lines) pw_walk_set_refusal("this Ruby hides rb_iseq_line_no");
    else pw_walk_set_refusal(passes("walk_self_test") ? NULL : "the self-test at load saw other stacks than Ruby's own");
}

const char *
pw_outside_refusal(void)
{
    static int proven; /* 1: yes, -1: no */
    static char text[80];
    if (pw_walk_refusal()) return pw_walk_refusal();
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
        if (result_of(take_sites_lesson, Qnil) == Qtrue) pw_walk_trust_sites();
    }
    return proven > 0 ? NULL : "a trial read other stacks than Ruby's own";
}

#else /* unknown layout */

#include "vm/vm_stack.h"

const char *pw_outside_refusal(void) { return pw_walk_refusal(); }
static void prove(void) { pw_walk_set_refusal(PW_LAYOUT_UNKNOWN); }
static VALUE native_walk_self_test(VALUE self) { return rb_str_new_cstr(pw_walk_refusal()); }
static VALUE native_outside_self_test(VALUE self) { return native_walk_self_test(self); }
static VALUE native_site_self_test(VALUE self) { return Qfalse; }

#endif

/* walk -> "own" or "rb_profile_frames": how stacks are taken */
static VALUE
native_walk(VALUE self)
{
    return rb_str_new_cstr(pw_walk_refusal() ? "rb_profile_frames" : "own");
}

/* walk_refusal -> nil, or a String: why Pitwall does not walk this Ruby's stacks itself */
static VALUE
native_walk_refusal(VALUE self)
{
    return pw_walk_refusal() ? rb_str_new_cstr(pw_walk_refusal()) : Qnil;
}

/* outside_refusal -> nil, or a String: why stacks can't be read from outside here */
static VALUE
native_outside_refusal(VALUE self)
{
    const char *why = pw_outside_refusal();
    return why ? rb_str_new_cstr(why) : Qnil;
}

void
pw_walk_tests_init(VALUE native)
{
    rb_define_singleton_method(native, "walk", native_walk, 0);
    rb_define_singleton_method(native, "walk_refusal", native_walk_refusal, 0);
    rb_define_singleton_method(native, "walk_self_test", native_walk_self_test, 0);
    rb_define_singleton_method(native, "outside_self_test", native_outside_self_test, 0);
    rb_define_singleton_method(native, "site_self_test", native_site_self_test, 0);
    rb_define_singleton_method(native, "outside_refusal", native_outside_refusal, 0);
    prove();
}

#include "collectors/caches/line_watch.h"
#include "collectors/caches/changes.h"
#include "collectors/caches/open_calls.h"
#include "collectors/caches/operators.h"
#include "sampling/works.h"
#include "session/session.h"
#include "tools/hidden.h"
#include "vm/raw_hook.h"
#include "vm/stack_walk.h"
#include "vm/vm_compat.h"
#include <string.h>

enum { MOST_WORDS = 400, LINE_EVENTS = RUBY_EVENT_LINE | RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN };
/* So many lines and returns in a row that change nothing: about 0.1 s of a loop of short lines. */
enum { QUIET_EVENTS = 1 << 20 };

static struct {
    bool on;
    int lines;              /* PW_LINES_… */
    uint32_t after;         /* pieces of work that end before lines are compared */
    _Atomic bool waits;     /* these have not ended yet */
    _Atomic bool awake;     /* lines and returns are compared now */
    _Atomic uint32_t quiet; /* lines and returns in a row that changed nothing */
    _Atomic uint32_t rests; /* how often comparing lines stopped */
    _Atomic bool wished;    /* another Ractor has found a reason to wake up */
    pw_job wake_job;
} state;

/* The code that runs since the last event of this native thread. Only compared, and used while its frame is still on
 * the stack, and while no rest was in between. */
static __thread struct { const VALUE *ec, *cfp; VALUE pc, iseq; uint32_t rests; } last
    __attribute__((tls_model("initial-exec")));

static uint32_t rests(void) { return atomic_load_explicit(&state.rests, memory_order_relaxed); }

static bool is_module(VALUE object) { return RB_TYPE_P(object, T_CLASS) || RB_TYPE_P(object, T_MODULE); }

static bool is_plain(ID name) { return RB_TYPE_P(rb_id2str(name), T_STRING); }
static bool is_constant(ID name) { return rb_is_const_id(name) && is_plain(name); }
static bool is_class_variable(ID name) { return rb_is_class_id(name) && is_plain(name); }
static bool is_variable(ID name) { return rb_is_instance_id(name) && is_plain(name); }

/* Are the words of the code that has just run known? Not after a jump back. */
static bool is_range(const VALUE *from, const VALUE *to) { return from && to >= from && to - from <= MOST_WORDS; }

/* The last such name among the words of the code that has just run: the operand of `setconstant` or the like. Reading a
 * constant also has a name: the operand true or false of the instruction before tells that (Ruby 3.1). */
static ID
name_between(const VALUE *from, const VALUE *to, bool (*fits)(ID name))
{
    ID found = 0;
    for (const VALUE *at = from; is_range(from, to) && at < to; at++) {
        if (fits == is_constant && at - from >= 2 && (at[-2] == Qtrue || at[-2] == Qfalse)) continue;
        if (*at < (VALUE)1 << 32 && fits((ID)*at)) found = (ID)*at;
    }
    return found;
}

static int
change_of(const uint64_t increase[PW_VM_COUNTERS])
{
    if (increase[PW_VM_CONSTANTS]) return PW_CONSTANT_CHANGED;
    if (increase[PW_VM_CLASSES]) return PW_CLASS_CHANGED;
    return increase[PW_VM_CVARS] ? PW_CLASS_VARIABLE_SET : PW_SHAPE_MADE;
}

/* Notes the increase at a control frame of the calling thread, as if the frame were the top one and at `pc`. */
static void
note_at(const VALUE *ec, const VALUE *cfp, VALUE pc, int change, const pw_subject *subject,
        const uint64_t increase[PW_VM_COUNTERS])
{
    pw_change_top = (pw_stack_top){ec, cfp, pc};
    pw_change_note(change, subject, increase);
    pw_change_top = (pw_stack_top){0};
}

/* Returns the kind of change. It is known more exactly from the code that has run: if the code names no constant or
 * variable, then an extension that it called has made the change. */
static int
describe(pw_subject *s, int change, VALUE self, const VALUE *from, const VALUE *to)
{
    if (change == PW_CONSTANT_CHANGED) {
        ID name = name_between(from, to, is_constant);
        if (name && is_module(self) && rb_const_defined_at(self, name)) pw_subject_of_constant(s, self, name);
        else if (name) pw_subject_add_id(s, name);
        return name ? PW_CONSTANT_SET : change;
    }
    if (change == PW_CLASS_CHANGED) return change;
    bool of_class = change == PW_CLASS_VARIABLE_SET;
    bool known = is_range(from, to);
    if (known && !name_between(from, to, of_class ? is_class_variable : is_variable) &&
        !(of_class ? 0 : name_between(from, to, is_class_variable))) return of_class ? PW_CLASS_CHANGED : change;
    if (self) pw_subject_of_object(s, self);
    return change;
}

static void on_line(VALUE unused, const pw_trace_arg *arg);

/* A hook belongs to the Ractor that adds it. Lines of the main Ractor are compared, so another Ractor leaves a wish. */
static void
wake(void *unused)
{
    if (!state.on || state.lines != PW_LINES_UNTIL_QUIET || atomic_load(&state.awake)) return;
    if (atomic_load(&state.waits)) return;
    if (!pw_in_main_ractor()) {
        if (!atomic_exchange(&state.wished, true) && pw_may_trigger()) pw_job_trigger(&state.wake_job);
        return;
    }
    atomic_store(&state.wished, false);
    if (atomic_exchange(&state.awake, true)) return;
    atomic_store(&state.quiet, 0);
    pw_add_raw_hook(on_line, LINE_EVENTS);
}

/* A hook may remove itself while it runs. */
static void
rest(void)
{
    if (!atomic_exchange(&state.awake, false)) return;
    atomic_fetch_add(&state.rests, 1);
    pw_remove_raw_hook(on_line);
}

/* Lines are not compared: nobody knows which code has changed the counters. It may do so again. */
static void
missed(void)
{
    uint64_t increase[PW_VM_COUNTERS];
    pw_vm_counters_claim(increase);
    wake(NULL);
}

void
pw_line_changed(const VALUE *ec, const VALUE *cfp)
{
    uint64_t increase[PW_VM_COUNTERS];
    if (!pw_changes_wanted()) return;
    if (!atomic_load_explicit(&state.awake, memory_order_relaxed)) missed();
    else if (pw_vm_counters_claim(increase)) pw_line_caused(ec, cfp, increase);
}

void
pw_line_caused(const VALUE *ec, const VALUE *cfp, const uint64_t *increase)
{
    if (!atomic_load_explicit(&state.awake, memory_order_relaxed)) {
        wake(NULL); /* an earlier line may have done so: it has no line then */
        return;
    }
    pw_subject s = {.size = 0};
    int change = change_of(increase);
    const VALUE *pc = (const VALUE *)cfp[PW_CFP_PC];
    bool known = cfp == last.cfp && pc && cfp[PW_CFP_ISEQ] == last.iseq && last.rests == rests();
    atomic_store_explicit(&state.quiet, 0, memory_order_relaxed);
    change = describe(&s, change, cfp[PW_CFP_SELF], known ? (const VALUE *)last.pc - 1 : NULL, pc);
    note_at(ec, cfp, 0, change, &s, increase);
}

void
pw_line_earlier(uint64_t *increase)
{
    if (atomic_load_explicit(&state.awake, memory_order_relaxed)) return;
    if (increase[PW_VM_SHAPES] || increase[PW_VM_CVARS]) wake(NULL);
    increase[PW_VM_SHAPES] = increase[PW_VM_CVARS] = 0;
}

/* A class body begins. Is the class new? Ruby 3.1 counts new classes. Newer Rubies count constants only. There the
 * increase belongs to this class if lines are compared: then no other code has run since the last event. */
static bool
class_begins(const pw_trace_arg *arg, bool awake, const uint64_t increase[PW_VM_COUNTERS], pw_subject *s)
{
    VALUE klass = arg->self;
    bool is_new = pw_vm_counters[PW_VM_CLASSES].name ? increase[PW_VM_CLASSES] : awake && increase[PW_VM_CONSTANTS];
    if (!is_module(klass) || !is_new) return false;
    pw_subject_of_module(s, klass);
    return true;
}

static void
changed(const pw_trace_arg *arg)
{
    uint64_t increase[PW_VM_COUNTERS];
    pw_subject s = {.size = 0};
    if (!pw_changes_wanted()) return;
    bool awake = atomic_load_explicit(&state.awake, memory_order_relaxed);
    if (!awake && arg->event != RUBY_EVENT_CLASS) {
        missed();
        return;
    }
    if (!pw_vm_counters_claim(increase)) return;
    /* A watched call began after the last event, and has called code of Ruby: the increase is the call's. */
    pw_call_place caller = {arg->ec, arg->cfp + PW_CFP_WORDS};
    if (arg->event != RUBY_EVENT_CLASS && pw_call_adds(caller, increase)) return;
    int change = change_of(increase);
    /* The body of `def a = @a = 1` has no line event. */
    bool bodily = (arg->event & (RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN)) && last.cfp != arg->cfp;
    bool alive = !bodily && last.ec == arg->ec && last.rests == rests() && last.cfp >= arg->cfp &&
                 pw_walk_has(arg->ec, last.cfp) && last.cfp[PW_CFP_ISEQ] == last.iseq && last.pc;
    const VALUE *cfp = alive ? last.cfp : arg->cfp;
    VALUE pc = alive ? last.pc : 0;
    if (arg->event == RUBY_EVENT_CLASS && class_begins(arg, awake, increase, &s)) {
        bool singleton = pw_object_of_singleton(arg->self) != Qundef;
        if (singleton) pw_subject_first_time(arg->self);
        change = singleton ? PW_SINGLETON_CLASS_MADE : RB_TYPE_P(arg->self, T_MODULE) ? PW_MODULE_MADE : PW_CLASS_MADE;
        cfp = arg->cfp + PW_CFP_WORDS; /* the frame of the keyword `class` */
        pc = 0;
    }
    else if (!awake) {
        wake(NULL);
        return;
    }
    else {
        const VALUE *to = (const VALUE *)cfp[PW_CFP_PC];
        atomic_store_explicit(&state.quiet, 0, memory_order_relaxed);
        change = describe(&s, change, cfp[PW_CFP_SELF], alive ? (const VALUE *)pc - 1 : NULL, to);
    }
    note_at(arg->ec, cfp, pc, change, &s, increase);
}

/* `class << object` makes the object's singleton class, if it has none. Ruby 3.1 counts that. */
static void
singleton_begins(const pw_trace_arg *arg)
{
    VALUE attached = pw_object_of_singleton(arg->self);
    if (attached == Qundef || RB_TYPE_P(attached, T_CLASS) || !pw_changes_wanted()) return;
    if (!pw_subject_first_time(arg->self) || pw_vm_counters[PW_VM_CLASSES].name) return;
    pw_subject s = {.size = 0};
    pw_subject_of_module(&s, arg->self);
    note_at(arg->ec, arg->cfp + PW_CFP_WORDS, 0, PW_SINGLETON_CLASS_MADE, &s, (uint64_t[PW_VM_COUNTERS]){0});
}

/* Remembers the code that runs from now on. After a return the caller goes on. */
static void
remember(const pw_trace_arg *arg)
{
    const VALUE *cfp = arg->cfp;
    if (arg->event & (RUBY_EVENT_RETURN | RUBY_EVENT_B_RETURN | RUBY_EVENT_END)) cfp += PW_CFP_WORDS;
    last.ec = arg->ec;
    last.cfp = cfp;
    last.pc = cfp[PW_CFP_PC];
    last.iseq = cfp[PW_CFP_ISEQ];
    last.rests = rests();
}

static void
on_line(VALUE unused, const pw_trace_arg *arg)
{
    if (__builtin_expect(pw_vm_counters_changed(), 0)) changed(arg);
    remember(arg);
    if (state.lines != PW_LINES_UNTIL_QUIET) return;
    uint32_t quiet = atomic_load_explicit(&state.quiet, memory_order_relaxed) + 1;
    atomic_store_explicit(&state.quiet, quiet, memory_order_relaxed);
    if (quiet >= QUIET_EVENTS) rest();
}

static void
on_class(VALUE unused, const pw_trace_arg *arg)
{
    if (__builtin_expect(atomic_load_explicit(&state.wished, memory_order_relaxed), 0)) wake(NULL);
    if (__builtin_expect(pw_vm_counters_changed(), 0)) changed(arg);
    singleton_begins(arg); /* Ruby 3.4 reports only the end of `class << object` */
    remember(arg);
}

/* Have counters changed while lines are not compared, or was that seen by another Ractor? Reads memory only. */
static bool
wakes(void)
{
    return state.on && state.lines == PW_LINES_UNTIL_QUIET &&
           !atomic_load_explicit(&state.waits, memory_order_relaxed) &&
           !atomic_load_explicit(&state.awake, memory_order_relaxed) &&
           (atomic_load_explicit(&state.wished, memory_order_relaxed) || pw_vm_counters_changed());
}

void
pw_line_watch_check(void)
{
    if (pw_may_trigger_anywhere() && wakes()) pw_job_trigger(&state.wake_job);
}

/* What changed before the wait was over is no reason to compare lines. */
static void
end_wait(void)
{
    uint64_t increase[PW_VM_COUNTERS];
    if (!atomic_load(&pw_works.begun) || atomic_load(&pw_works.ended) < state.after || !pw_in_main_ractor()) return;
    pw_vm_counters_claim(increase);
    atomic_store(&state.waits, false);
}

void
pw_line_watch_work(void)
{
    if (__builtin_expect(atomic_load_explicit(&state.waits, memory_order_relaxed), 0)) end_wait();
    if (pw_may_trigger() && wakes()) pw_job_trigger(&state.wake_job);
}

/* Ruby runs jobs in any Ractor; the next check triggers another job. */
static void
run_wake_job(void *unused)
{
    if (pw_in_main_ractor() && wakes()) missed();
}

uint32_t pw_line_watch_rests(void) { return rests(); }

void
pw_line_watch_start(int lines, long after)
{
    bool waits = lines == PW_LINES_UNTIL_QUIET && after >= 0, awake = lines != PW_LINES_NEVER && !waits;
    state.on = true;
    state.lines = lines;
    state.after = (uint32_t)after;
    atomic_store(&state.waits, waits);
    atomic_store(&state.rests, waits); /* it begins with a rest */
    atomic_store(&state.quiet, 0);
    atomic_store(&state.wished, false);
    atomic_store(&state.awake, awake);
    pw_add_raw_hook(on_class, RUBY_EVENT_CLASS | RUBY_EVENT_END);
    if (awake) pw_add_raw_hook(on_line, LINE_EVENTS);
}

void
pw_line_watch_stop(void)
{
    if (state.on) pw_remove_raw_hook(on_class);
    if (state.on && atomic_exchange(&state.awake, false)) pw_remove_raw_hook(on_line);
    state.on = false;
}

void
pw_line_watch_init(void)
{
    if (!pw_job_init(&state.wake_job, run_wake_job)) {
        rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    }
}

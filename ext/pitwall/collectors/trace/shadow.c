/* The slow part of shadow stacks: work that is not needed at every event. */
#include "collectors/trace/shadow.h"
#include "output/naming.h"
#include "sampling/registry.h"
#include <stdlib.h>

pw_trace_state pw_trace = {.statm = -1};

#if PW_LAYOUT_RUBY

int64_t
pw_trace_thread_cpu(void)
{
    pw_thread *t = pw_self();
    return t ? pw_thread_cpu(t) : pw_own_cpu_ns();
}

bool
pw_trace_is_callers(const pw_call_tree *tree)
{
    const pw_thread *t = pw_trace.calibrating ? NULL : pw_self();
    return pw_trace.calibrating || (t && t->id == tree->thread_id);
}

uint64_t
pw_trace_read_cpu(pw_call_tree *tree, pw_call_node *node, uint64_t pause)
{
    pw_naming_trigger_if_wanted(); /* without a ticker, names are requested here */
    if (!pw_trace.cpu || !pw_trace_is_callers(tree)) return pw_trace.last + pause; /* charged to the end of the pause */
    int64_t cpu = pw_trace_thread_cpu();
    double ran = (double)(int64_t)(pw_trace.last - tree->cpu_tick) * pw_trace.tick_ns;
    double in_pause = (double)(cpu - tree->cpu_read) - pw_trace.cpu_read_ns - ran;
    node->off += (int64_t)pause - (int64_t)(in_pause / pw_trace.tick_ns);
    tree->cpu_read = cpu;
    return tree->cpu_tick = pw_ticks(&pw_trace.clock);
}

/* Leaves a stack because another thread runs. The CPU time of the pause is found when the stack's thread runs again. */
static void
leave(pw_shadow *s, pw_call_node *node, uint64_t now)
{
    s->tree->ran = pw_trace.last - s->tree->cpu_tick;
    node->wall += now - pw_trace.last;
    node->off += (int64_t)(now - pw_trace.last);
    s->paused = pw_trace.last = now;
}

static pw_shadow **
slot_of(const VALUE *ec)
{
    return &pw_trace.slots[(uintptr_t)ec * 0x9e3779b97f4a7c15u >> 52];
}

pw_shadow *
pw_shadow_find(const VALUE *ec)
{
    pw_shadow *s = *slot_of(ec);
    while (s && s->ec != ec) s = s->next;
    return s;
}

static void
leave_tree(pw_shadow *s)
{
    for (pw_shadow **at = &s->tree->stacks; *at; at = &(*at)->next_of_tree) {
        if (*at != s) continue;
        *at = s->next_of_tree;
        break;
    }
    if (s->tree->active == s) s->tree->active = NULL;
}

static void
join_tree(pw_shadow *s, pw_call_tree *tree)
{
    s->thread = rb_thread_current();
    s->tree = tree;
    s->next_of_tree = tree->stacks;
    tree->stacks = s;
    s->paused = 0;
    s->count = 0;
    pw_shadow_push(s, (const VALUE *)UINTPTR_MAX, &tree->root, 0, 0);
}

void
pw_shadow_free(pw_shadow *s)
{
    for (pw_shadow **at = slot_of(s->ec); *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        break;
    }
    free(s->entries);
    free(s);
}

pw_call_node *
pw_shadow_find_node(pw_shadow *s, pw_call_node *from, VALUE a, VALUE b, uint8_t kind, const pw_call_site *site)
{
    bool was_busy = pw_trace.busy;
    pw_trace.busy = true;
    pw_call_node *node = pw_call_child_slow(s->tree, from, a, b, kind, site);
    pw_trace.busy = was_busy;
    pw_trace.stack = s; /* another thread may have run during the name lookup */
    pw_trace.ec = s->ec;
    pw_trace.last = pw_ticks(&pw_trace.clock);
    return node;
}

static void
met(const VALUE *cfp, const pw_frame_seen *seen, void *data)
{
    pw_shadow *s = data;
    bool ruby = cfp[PW_CFP_ISEQ] && seen->frame == cfp[PW_CFP_ISEQ];
    /* A block in C has the name of its method, so skip its frame. */
    if (!ruby && !pw_frame_is_call_of_c((const VALUE *)cfp[PW_CFP_EP])) return;
    VALUE b = ruby ? 0 : PW_CALL_MET;
    pw_call_site site = {s->ec, cfp, seen->owner};
    pw_call_node *from = pw_shadow_top(s), *node = pw_call_child(from, seen->frame, b);
    if (!node) node = pw_shadow_find_node(s, from, seen->frame, b, ruby ? PW_CALL_RUBY : PW_CALL_C, &site);
    pw_shadow_push(s, cfp, node ? node : from, seen->frame, b);
}

static void
tree_with(pw_call_tree *tree, void *data)
{
    struct { uint32_t id; pw_call_tree *found; } *wanted = data;
    if (tree->thread_id == wanted->id && !tree->ended) wanted->found = tree;
}

static pw_call_tree *
tree_of(uint32_t thread_id)
{
    struct { uint32_t id; pw_call_tree *found; } wanted = {thread_id, NULL};
    pw_call_trees_each(tree_with, &wanted);
    return wanted.found ? wanted.found : pw_noted(pw_call_tree_new(thread_id));
}

/* The calling thread's number in the recording. 0: the thread has ended, or there was no room. */
static uint32_t
own_id(void)
{
    if (pw_trace.calibrating) return 1;
    pw_thread *t = pw_self();
    VALUE thread = rb_thread_current();
    if (t && t->thread == thread) return t->id;
    if (pw_tls.ended == pw_session_generation() && pw_tls.ended_thread == thread) return 0;
    t = pw_register_thread(thread, pw_gettid(), true);
    return t ? t->id : 0;
}

void
pw_trace_settle(uint64_t now)
{
    if (pw_trace_is_callers(pw_trace.stack->tree)) pw_trace_charge(pw_trace.stack, pw_shadow_top(pw_trace.stack), now);
    else {
        leave(pw_trace.stack, pw_shadow_top(pw_trace.stack), now);
        pw_trace.ec = NULL;
        pw_trace.stack = NULL;
    }
}

pw_shadow *
pw_shadow_switch(const pw_trace_arg *arg, uint64_t now)
{
    if (pw_trace.paused || !pw_trace.running || (pw_trace.own_thread && pw_trace.own_thread == rb_thread_current())) {
        return NULL;
    }
    if (!pw_trace.armed) {
        /* The calls that start the recording are not recorded. Recording begins when `start` returns. */
        if (arg->event != RUBY_EVENT_C_RETURN || arg->id != pw_trace.start || arg->self != pw_trace.native) return NULL;
        pw_trace.armed = true;
        pw_trace.last = now;
    }
    pw_shadow *s = pw_shadow_find(arg->ec), *before = pw_trace.stack;
    /* Ruby 3.1 may not report the end of a thread. A later thread that ends without a call may have its context. */
    if (arg->event == RUBY_EVENT_THREAD_END && (!s || s->thread != rb_thread_current())) return NULL;
    uint32_t id = arg->event == RUBY_EVENT_THREAD_END ? s->tree->thread_id : own_id();
    pw_trace.ec = NULL;
    pw_trace.stack = NULL;
    if (before) {
        if (before->tree->thread_id == id) pw_trace_charge(before, pw_shadow_top(before), now);
        else leave(before, pw_shadow_top(before), now);
        before->paused = now;
    }
    if (!id) return NULL;
    pw_call_tree *tree = !s || s->tree->thread_id != id ? tree_of(id) : s->tree;
    if (!tree) return NULL;
    if (s && s->tree != tree) { /* the context's memory now belongs to another thread */
        leave_tree(s);
        join_tree(s, tree);
        pw_walk_frames(s->ec,
                       arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS) ? arg->cfp + PW_CFP_WORDS : arg->cfp, met, s);
    }
    if (!s) {
        if (!(s = pw_noted(calloc(1, sizeof *s)))) return NULL;
        s->ec = arg->ec;
        s->room = 16;
        if (!(s->entries = pw_noted(malloc(s->room * sizeof(pw_shadow_entry))))) {
            free(s);
            return NULL;
        }
        s->next = *slot_of(s->ec);
        *slot_of(s->ec) = s;
        join_tree(s, tree);
        pw_walk_frames(s->ec,
                       arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL | RUBY_EVENT_CLASS) ? arg->cfp + PW_CFP_WORDS : arg->cfp, met, s);
    }
    /* Drop the entries of an abandoned fiber whose memory another fiber now uses: nothing waits for them. */
    if (arg->event & (PW_TRACE_CALLS & ~RUBY_EVENT_C_CALL)) pw_shadow_trim(s, arg->cfp + 1);
    else pw_shadow_trim(s, arg->event & RUBY_EVENT_C_RETURN ? arg->cfp - PW_CFP_WORDS : arg->cfp);
    if (s->paused && now > s->paused && s->count > 1) pw_shadow_top(s)->wait += now - s->paused;
    pw_trace.ec = s->ec;
    pw_trace.stack = s;
    pw_trace.last = pw_ticks(&pw_trace.clock);
    s->tree->active = s;
    if (pw_trace.cpu && (!before || before->tree != s->tree)) {
        int64_t cpu = pw_trace_thread_cpu();
        if (s->tree->cpu_read) {
            double spent = (double)(cpu - s->tree->cpu_read) - pw_trace.cpu_read_ns - (double)s->tree->ran * pw_trace.tick_ns;
            if (spent > 0) pw_shadow_top(s)->off -= (int64_t)(spent / pw_trace.tick_ns);
        }
        s->tree->cpu_read = cpu;
        pw_trace.last = s->tree->cpu_tick = pw_ticks(&pw_trace.clock);
    }
    return s;
}

#endif

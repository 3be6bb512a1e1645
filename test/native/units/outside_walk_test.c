/* The walk of another thread's stack, while that thread runs on.
 *
 * sources: stack_walk.c outside_walk.c walk_tests.c quietly.c peek.c known_frames.c raw_syscall.c
 * wraps: process_vm_readv
 * unresolved: allowed
 * layouts: all */
#include "fake_vm.h"
#include <sys/uio.h>

static uint32_t peeks;
static void (*at_peek)(uint32_t number);
typedef const struct iovec *pieces;
ssize_t __real_process_vm_readv(pid_t pid, pieces local, size_t n, pieces remote, size_t m, size_t flags);
ssize_t __wrap_process_vm_readv(pid_t pid, pieces local, size_t n, pieces remote, size_t m, size_t flags);

ssize_t
__wrap_process_vm_readv(pid_t pid, pieces local, size_t n, pieces remote, size_t m, size_t flags)
{
    peeks++;
    if (at_peek) at_peek(peeks);
    return __real_process_vm_readv(pid, local, n, remote, m, flags);
}

static pw_walk
new_reader(uint32_t room, bool in_place)
{
    pw_walk w = new_walk(room);
    if (in_place) w.root = main_fiber.ec;
    peeks = 0;
    at_peek = NULL;
    return w;
}

TEST(from_outside_the_same_is_seen)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        begin();
        pw_walk w = new_reader(MOST_FRAMES, in_place);
        for (uint32_t turn = 0; turn < unit_rounds(2000); turn++) {
            uint32_t same;
            if (unit_random(9) < 5 && running->depth < MOST_FRAMES - 1) push_any();
            else if (running->depth && unit_random(3)) pop();
            else step();
            unit_note("in place: %d, turn %u, depth %u", in_place, turn, running->depth);
            EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
            CHECK(same <= running->depth);
            expect_stack(&w);
        }
    }
}

TEST(from_outside_a_deep_stack_is_cut)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        uint32_t same;
        begin();
        for (int i = 0; i < 100; i++) push_method(&codes[i % CODES]);
        pw_walk w = new_reader(20, in_place);
        EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
        EQUAL(80, w.cut);
        expect_part(&w, running, 80, 100);
        EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
        EQUAL(20, same);
    }
}

TEST(a_thread_without_a_stack)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        uint32_t same;
        begin();
        push_method(&codes[0]);
        pw_walk w = new_reader(50, in_place);
        EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
        main_fiber.ec[PW_EC_STACK] = 0; /* it has ended */
        EQUAL(PW_NOTHING, pw_walk_outside(&w, &same));
        EQUAL(1, same);
        EQUAL(0, w.depth);
        main_fiber.ec[PW_EC_STACK] = (VALUE)main_fiber.base;
        pop();
        EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
        EQUAL(0, w.depth);
        switch_fiber(NULL);
        EQUAL(PW_NOTHING, pw_walk_outside(&w, &same));
    }
}

/* A fiber's stack may be unmapped, or its context. */
TEST(a_fiber_that_is_gone_is_torn)
{
    uint32_t same;
    fiber other;
    begin();
    make_fiber(&other);
    switch_fiber(&other);
    push_method(&codes[0]);
    pw_walk w = new_reader(50, true); /* the root is the main fiber, so this fiber is read through the kernel */
    EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
    expect_stack(&w);
    CHECK(peeks > 3);
    EQUAL(0, munmap(other.base, STACK_WORDS * sizeof(VALUE)));
    EQUAL(PW_TORN, pw_walk_outside(&w, &same));
    EQUAL(1, same);
    *(VALUE *)(thread + PW_THREAD_EC) = nowhere();
    EQUAL(PW_TORN, pw_walk_outside(&w, &same));
    EQUAL(1, same);
}

static uint32_t change_at;
static void (*change)(void);
static fiber before;

static void
change_once(uint32_t number)
{
    if (number == change_at) change();
}

/* Returns from 25 calls and makes 30 others. */
static void
change_deeply(void)
{
    pop_to(5);
    for (int i = 0; i < 30; i++) push_method(&codes[(i * 5 + 3) % CODES]);
}

static void end_of_thread(void) { running->ec[PW_EC_STACK] = 0; }
static void other_context(void) { *(VALUE *)(thread + PW_THREAD_EC) = (VALUE)guarded(PW_EC_WORDS * sizeof(VALUE)); }
static void unmap_stack(void) { EQUAL(0, munmap(running->base, STACK_WORDS * sizeof(VALUE))); }

/* Did the walk see the stack as it was before the change? */
static bool
is_stack_of_before(const pw_walk *w)
{
    if (w->depth != before.depth) return false;
    for (uint32_t i = 0; i < w->depth; i++) {
        if (w->seen[i].frame != before.frames[i].frame || w->seen[i].owner != before.frames[i].owner) return false;
    }
    return true;
}

/* Did the walk see the new stack, or a part of it from the root on? It had that depth while it grew. */
static bool
is_stack_since(const pw_walk *w)
{
    if (w->depth > running->depth) return false;
    for (uint32_t i = 0; i < w->depth; i++) {
        if (w->seen[i].frame != running->frames[i].frame || w->seen[i].owner != running->frames[i].owner) return false;
    }
    return true;
}

/* The thread changes its stack when the reader asks the kernel for the first time, the second time, and so on. A stack
 * that the reader accepts must have existed. */
TEST(a_stack_that_changes_meanwhile_is_torn)
{
    void (*changes[])(void) = {change_deeply, end_of_thread, other_context, unmap_stack};
    for (int in_place = 0; in_place < 2; in_place++) {
        for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
            uint32_t torn = 0, seen = 0, most = 1;
            if (in_place && changes[c] == unmap_stack) continue; /* a thread's root stack stays mapped */
            for (change_at = 1; change_at <= most; change_at++) {
                uint32_t same;
                begin();
                for (int i = 0; i < 30; i++) push_method(&codes[i % CODES]);
                pw_walk w = new_reader(60, in_place);
                before = main_fiber;
                change = changes[c];
                at_peek = change_once;
                pw_outcome outcome = pw_walk_outside(&w, &same);
                unit_note("in place: %d, change %zu at question %u of %u", in_place, c, change_at, peeks);
                if (change_at == 1) most = peeks > 200 ? 200 : peeks;
                torn += outcome == PW_TORN;
                seen += outcome == PW_SEEN;
                CHECK(outcome != PW_NOTHING || changes[c] == end_of_thread);
                CHECK(outcome != PW_SEEN || is_stack_of_before(&w) || is_stack_since(&w));
            }
            unit_note("in place: %d, change %zu: %u torn, %u seen", in_place, c, torn, seen);
            CHECK(torn > 0 || most < 3 || changes[c] == end_of_thread);
        }
    }
    at_peek = NULL;
}

/* Between two looks the thread may return and call near the leaf. */
TEST(a_thread_that_goes_on_above_is_seen)
{
    uint32_t same;
    begin();
    for (int i = 0; i < 30; i++) push_method(&codes[i % CODES]);
    pw_walk w = new_reader(60, true);
    EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
    expect_stack(&w);
    pop_to(25);
    push_method(&codes[7]);
    EQUAL(PW_SEEN, pw_walk_outside(&w, &same));
    EQUAL(25, same);
    expect_stack(&w);
}

/* ---- sites of calls ---- */

static VALUE replaced_ep;

static void
return_from_c(uint32_t number)
{
    if (number != change_at) return;
    leaf()[PW_CFP_EP] = replaced_ep; /* the next call has begun to push its frame */
    *(VALUE *)(running->ec + PW_EC_CFP) += PW_CFP_BYTES;
}

/* The frame seen for a C function on top that returns when the reader asks the kernel for the `at`-th time; 0: none. */
static VALUE
seen_of_returning_function(const code *caller, uint32_t at)
{
    uint32_t same;
    begin();
    push_method(&codes[0]);
    push_method(caller);
    leaf()[PW_CFP_PC] = pc_at(caller, 5);
    push_c_function(c_functions[3]);
    replaced_ep = (VALUE)running->frames[0].ep;
    pw_walk w = new_reader(60, false);
    change_at = at;
    at_peek = return_from_c;
    pw_outcome outcome = pw_walk_outside(&w, &same);
    at_peek = NULL;
    unit_note("it returns at question %u", at);
    if (outcome != PW_SEEN || w.depth < 3) return 0;
    EQUAL(codes[0].iseq, w.seen[0].frame);
    EQUAL(caller->iseq, w.seen[1].frame);
    CHECK(!w.seen[2].frame || w.seen[2].frame == c_functions[3]);
    return w.seen[2].frame;
}

/* A C function on top returns during the look. The call site in its caller's code names the function. */
TEST(a_c_function_that_has_gone_is_known_by_its_caller)
{
    uint32_t by_site = 0;
    code *caller = &codes[3];
    begin();
    if (pw_outside_refusal()) unit_fail(__FILE__, __LINE__, "refused: %s", pw_outside_refusal());
    VALUE *site = guarded(PW_CALL_DATA_WORDS * sizeof(VALUE)), *cache = internal_object(PW_IMEMO_CALLCACHE);
    cache[PW_CACHE_METHOD] = c_functions[3];
    site[PW_CALL_DATA_CACHE] = (VALUE)cache;
    caller->body[PW_BODY_CALL_DATA] = (VALUE)site;
    ((uint32_t *)caller->body)[PW_BODY_CALL_DATA_COUNT] = 1;
    for (uint32_t at = 1; at < 8; at++) {
        caller->encoded[4] = 0;
        VALUE without = seen_of_returning_function(caller, at);
        caller->encoded[4] = (VALUE)site; /* an operand of the instruction before pc */
        VALUE with = seen_of_returning_function(caller, at);
        by_site += with && !without;
    }
    CHECK(by_site > 0);
    caller->encoded[4] = (VALUE)site + 8; /* no site begins there */
    for (uint32_t at = 1; at < 8; at++) seen_of_returning_function(caller, at);
}

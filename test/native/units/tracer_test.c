/* Exact calls: counts, self times, total times and waits, against an oracle that knows the real stack.
 *
 * Exceptions, tail calls and abandoned fibers end calls without an event.
 *
 * sources: tracer.c shadow.c trace_gc.c calls.c stack_walk.c outside_walk.c walk_tests.c quietly.c peek.c known_frames.c raw_syscall.c
 * wraps: clock_gettime fopen
 * unresolved: allowed
 * layouts: 40 */
#include "fake_program.h"

TEST(time_goes_to_what_runs)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    now += 7;
    call_ruby(&codes[2], false);
    now += 11;
    call_c(1);
    now += 13;
    return_one(false);
    now += 17;
    return_one(false);
    now += 19;
    call_ruby(&codes[2], false);
    now += 23;
    return_one(false);
    bool made;
    uint32_t caller = current->calls[3].node, callee = plain_node_of(caller, codes[2].iseq, 0, &made);
    EQUAL(7 + 19, nodes[caller].wall);
    EQUAL(11 + 17 + 23, nodes[callee].wall);
    EQUAL(2, nodes[callee].calls);
    EQUAL(11 + 13 + 17 + 23, nodes[callee].total);
    check_all();
}

/* Each level has its own node, so a total counts no time twice. */
TEST(recursion)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    for (uint32_t i = 0; i < 20; i++) {
        now += i;
        call_ruby(&codes[2], false);
    }
    for (uint32_t i = 0; i < 20; i++) {
        now += 100 + i;
        return_one(false);
    }
    EQUAL(20 + 4, pw_call_nodes());
    check_all();
}

/* Calls that began before tracing get their time, but do not count as calls. */
TEST(calls_that_had_begun_before)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    while (running->depth > 1) {
        now += 10;
        return_one(running->depth == 3);
    }
    now += 5;
    call_c(2);
    now += 5;
    return_one(false);
    check_all();
}

/* Ruby reports each call that an exception ends; a C function's before the frame is popped. */
TEST(an_exception_that_is_told)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    for (uint32_t i = 0; i < 10; i++) {
        now += 3;
        if (i % 3 == 2) call_c(i % C_FUNCTIONS);
        else call_ruby(&codes[i % 4], false);
    }
    for (uint32_t i = 0; i < 7; i++) {
        now += 2;
        return_one(true);
    }
    now += 50;
    call_ruby(&codes[3], false);
    check_all();
}

/* Several calls end without an event. The time until the next event goes to the innermost of them. */
TEST(calls_that_end_in_silence)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    for (uint32_t i = 0; i < 10; i++) {
        now += 3;
        if (i % 3 == 2) call_c(i % C_FUNCTIONS);
        else call_ruby(&codes[i % 4], false);
    }
    uint32_t innermost = current->top;
    uint64_t wall = nodes[innermost].wall;
    pop_to(6);
    now += 40;
    call_ruby(&codes[3], false);
    EQUAL(wall + 40, nodes[innermost].wall);
    EQUAL(7, current->depth);
    pop_to(5);
    now += 10;
    return_one(false);
    pop_to(3);
    now += 10;
    call_c(1);
    now += 10;
    check_all();
}

/* Ruby reports a method made of a block as a method and as a block, with one frame. It counts as one call. */
TEST(a_block_that_is_a_method_counts_once)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    for (int i = 0; i < 3; i++) {
        now += 10;
        call_ruby(&codes[2], false);
        fire(RUBY_EVENT_B_CALL, leaf(), 0, 0);
        now += 10;
        settle_oracle(running->depth);
        fire(RUBY_EVENT_B_RETURN, leaf(), 0, 0);
        end_calls(current, running->depth - 1);
        told_now();
        now += 3;
        settle_oracle(running->depth - 1);
        fire(RUBY_EVENT_RETURN, leaf(), 0, 0);
        pop();
        told_now();
    }
    check_all();
}

/* A call without a return, and another call with its frame in the same place, are two calls. */
TEST(a_call_in_the_place_of_another)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    for (int i = 0; i < 5; i++) {
        now += 10;
        call_ruby(&codes[i % 2 + 2], false);
        pop();
    }
    check_all();
}

/* The same for a block. A method had its frame in that place before. */
TEST(a_block_in_the_place_of_itself)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    now += 10;
    call_ruby(&codes[2], false);
    now += 10;
    return_one(false);
    for (int i = 0; i < 3; i++) {
        now += 10;
        call_ruby(&codes[7], true);
        pop();
    }
    check_all();
}

TEST(deeper_calls_than_wanted_are_their_callers)
{
    begin_tracing((pw_call_rules){.max_nodes = 100, .max_depth = 6});
    for (uint32_t i = 0; i < 12; i++) {
        now += 3;
        if (i % 3 == 2) call_c(i % C_FUNCTIONS);
        else call_ruby(&codes[i % 4], false);
    }
    for (uint32_t i = 0; i < 12; i++) {
        now += 4;
        return_one(false);
    }
    EQUAL(6, pw_call_nodes());
    check_all();
}

TEST(calls_without_room_are_lost_and_their_time_is_not)
{
    begin_tracing((pw_call_rules){.max_nodes = 8});
    for (uint32_t i = 0; i < 10; i++) {
        now += 3;
        call_ruby(&codes[i % 4], false);
    }
    for (uint32_t i = 0; i < 10; i++) {
        now += 4;
        return_one(false);
    }
    CHECK(lost > 0);
    EQUAL(lost, pw_call_lost());
    check_all();
}

/* The call on top waits while another thread or fiber runs. */
TEST(threads_and_fibers_wait_for_each_other)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    for (uint32_t i = 0; i < 12; i++) {
        now += 10;
        use_context(&contexts[i % CONTEXTS]);
        if (!running->depth || i % 3) call_ruby(&codes[i % 4], false);
        else return_one(false);
        now += 10;
        call_ruby(&codes[2], false);
    }
    check_all();
}

/* Random events of all kinds above, with short and long pauses. */
static void
run_random_program(uint32_t turns)
{
    for (uint32_t turn = 0; turn < turns; turn++) {
        now += unit_random(50) ? unit_random(2000) : 15000 + unit_random(100000);
        if (unit_random(20) == 0) use_context(&contexts[unit_random(CONTEXTS)]);
        uint32_t depth = running->depth, what = unit_random(20);
        unit_note("turn %u, context %td, depth %u", turn, current - contexts, depth);
        if (!depth || (what < 9 && depth < 40)) {
            const pushed *p = depth ? &running->frames[depth - 1] : NULL;
            if (depth && what < 3) call_c(unit_random(C_FUNCTIONS));
            else if (p && p->code && p->code < &codes[4] && what < 6) call_ruby(&codes[6 + (p->code - codes)], true);
            else call_ruby(&codes[unit_random(4)], false);
        }
        else if (what < 17 || depth < 6) {
            if (depth > 1) return_one(unit_random(10) == 0);
        }
        else if (what < 18) {
            for (uint32_t n = unit_random(depth - 1); n > 0; n--) {
                return_one(true);
                now += unit_random(30);
            }
        }
        else pop_to(depth - 1 - unit_random(depth - 1));
    }
}

TEST(random_programs_add_up)
{
    for (uint32_t i = 0; i < unit_rounds(30); i++) {
        begin_tracing((pw_call_rules){.max_nodes = 3000});
        run_random_program(600);
        check_all();
    }
}

TEST(random_programs_that_are_cut_add_up)
{
    for (uint32_t i = 0; i < unit_rounds(30); i++) {
        uint32_t max_depth = unit_random(2) ? 4 + unit_random(20) : 0;
        begin_tracing((pw_call_rules){.max_nodes = 50 + unit_random(300), .max_depth = max_depth});
        run_random_program(600);
        check_all();
    }
}

/* ---- objects and garbage collection ---- */

static void
fire_internal(rb_event_flag_t event)
{
    pw_trace_arg arg = {.event = event, .ec = current->f.ec, .cfp = leaf()};
    CHECK(on_internal);
    on_internal(Qnil, &arg);
}

TEST(objects_belong_to_what_makes_them)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    call_ruby(&codes[2], false);
    for (int i = 0; i < 5; i++) fire_internal(RUBY_INTERNAL_EVENT_NEWOBJ);
    call_c(1);
    for (int i = 0; i < 3; i++) fire_internal(RUBY_INTERNAL_EVENT_NEWOBJ);
    return_one(false);
    fire_internal(RUBY_INTERNAL_EVENT_NEWOBJ);
    bool made;
    uint32_t callee = current->top, inner = plain_node_of(callee, class_of_c(1), 51, &made);
    CHECK(!made);
    check_all();
    EQUAL(6, nodes[callee].met->objects);
    EQUAL(3, nodes[inner].met->objects);
}

/* Marking and sweeping have nodes of their own below the running call. */
TEST(collections_have_their_own_time)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    now += 10;
    call_ruby(&codes[2], false);
    now += 20;
    fire_internal(RUBY_INTERNAL_EVENT_GC_ENTER);
    now += 300;
    fire_internal(RUBY_INTERNAL_EVENT_GC_END_MARK);
    now += 70;
    fire_internal(RUBY_INTERNAL_EVENT_GC_END_SWEEP);
    fire_internal(RUBY_INTERNAL_EVENT_GC_EXIT);
    uint32_t caller = current->top;
    nodes[caller].wall += 20;
    nodes[node_count++] = (plain_node){.parent = caller, .a = PW_FRAME_MARKING, .wall = 300, .total = 300};
    nodes[node_count++] = (plain_node){.parent = caller, .a = PW_FRAME_SWEEPING, .wall = 70, .total = 70};
    current->clock += 20 + 300 + 70;
    told_at = now;
    now += 9;
    check_all();
}

/* The stacks of a thread go with it. A later thread may have the same context. */
TEST(a_thread_that_ends)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    use_context(&contexts[1]);
    now += 10;
    call_ruby(&codes[2], false);
    now += 10;
    call_ruby(&codes[3], false);
    now += 30;
    charge_oracle();
    end_calls(current, 0);
    fire(RUBY_EVENT_THREAD_END, leaf(), 0, 0);
    told = NULL;
    current->known = false;
    pop_to(0);
    contexts[1].thread = 2;
    contexts[1].paused = 0;
    use_context(&contexts[1]);
    now += 1000;
    call_ruby(&codes[2], false);
    now += 5;
    return_one(false);
    check_all();
}

/* A thread ends without an event, as some do on Ruby 3.1, and a new thread gets the same context. */
TEST(a_context_that_another_thread_has_now)
{
    begin_tracing((pw_call_rules){.max_nodes = 100});
    use_context(&contexts[1]);
    now += 10;
    call_ruby(&codes[2], false);
    now += 10;
    call_ruby(&codes[3], false);
    use_context(&contexts[0]);
    now += 30;
    call_ruby(&codes[3], false);
    end_calls(&contexts[1], 0);
    contexts[1].thread = 2;
    contexts[1].paused = 0;
    use_context(&contexts[1]);
    pop_to(0);
    now += 100;
    call_ruby(&codes[2], false);
    now += 5;
    call_c(1);
    now += 7;
    return_one(false);
    check_all();
    EQUAL(10 + 30, nodes[2].met ? sum_of_subtree(2) : 0);
}

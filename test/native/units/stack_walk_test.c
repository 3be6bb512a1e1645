/* A thread's walk of its own stack. The frame on top may be half pushed.
 *
 * sources: stack_walk.c outside_walk.c walk_tests.c quietly.c peek.c known_frames.c raw_syscall.c
 * unresolved: allowed
 * layouts: all */
#include "fake_vm.h"

TEST(frames_of_all_kinds)
{
    begin();
    push_top(&codes[0]);
    push_method(&codes[1]);
    push_block(&codes[2]);
    push_c_function(c_functions[0]);
    push_c_block();
    push_method(&codes[3]);
    push_c_function(c_functions[1]);
    pw_walk w = new_walk(50);
    EQUAL(0, pw_walk_stack(&w));
    expect_stack(&w);
    EQUAL(7, pw_walk_listed(&w, 7));
    EQUAL(c_functions[0], w.seen[4].frame);
    EQUAL(codes[1].entry, w.seen[2].owner); /* a block's owner is its method's */
    EQUAL(7, pw_walk_stack(&w));
    expect_stack(&w);
}

TEST(an_empty_stack)
{
    begin();
    pw_walk w = new_walk(50);
    EQUAL(0, pw_walk_stack(&w));
    EQUAL(0, w.depth);
    EQUAL(0, pw_walk_listed(&w, 0));
    push_method(&codes[0]);
    pw_walk_stack(&w);
    EQUAL(1, w.depth);
    pop();
    EQUAL(0, pw_walk_stack(&w));
    EQUAL(0, w.depth);
}

TEST(only_what_has_changed_is_looked_at)
{
    begin();
    for (int i = 0; i < 10; i++) push_method(&codes[i]);
    pw_walk w = new_walk(50);
    pw_walk_stack(&w);
    EQUAL(10, lines_asked);
    EQUAL(10, pw_walk_stack(&w));
    EQUAL(10, lines_asked);
    pop();
    push_method(&codes[9]);
    step();
    EQUAL(9, pw_walk_stack(&w) + (leaf()[PW_CFP_PC] == pc_at(&codes[9], 1)));
    pop_to(4);
    push_method(&codes[11]);
    EQUAL(4, pw_walk_stack(&w));
    expect_stack(&w);
    CHECK(lines_asked <= 12);
}

/* Random calls, returns, exceptions and instructions, with walks between them. The oracle compares all frames with
 * those of the walk before. */
TEST(random_stacks_agree_with_what_was_pushed)
{
    struct { VALUE iseq, ep, place; } before[MOST_FRAMES];
    uint32_t depth = 0;
    begin();
    pw_walk w = new_walk(MOST_FRAMES);
    for (uint32_t turn = 0; turn < unit_rounds(20000); turn++) {
        uint32_t what = unit_random(12);
        if (what < 6 && running->depth < MOST_FRAMES - 1) push_any();
        else if (what < 9 && running->depth) pop();
        else if (what == 9 && unit_random(5) == 0) pop_to(unit_random(running->depth + 1));
        else step();
        if (unit_random(4)) continue;
        uint32_t same = 0, result = pw_walk_stack(&w), now = running->depth;
        expect_stack(&w);
        unit_note("turn %u, depth %u after %u", turn, now, depth);
        for (bool alike = true; same < now && same < depth && alike; same += alike) {
            const VALUE *cfp = control_frame(running, same);
            VALUE place = cfp[PW_CFP_ISEQ] ? cfp[PW_CFP_PC] : ((VALUE *)cfp[PW_CFP_EP])[PW_EP_ME_CREF];
            alike = before[same].iseq == cfp[PW_CFP_ISEQ] && before[same].ep == cfp[PW_CFP_EP];
            alike = alike && before[same].place == place;
        }
        /* An unlisted frame on top is looked at each time, as it may be half pushed. */
        EQUAL(same, result + (result + 1 == same && !w.keys[result].ep));
        for (uint32_t i = 0; i < now; i++) {
            const VALUE *cfp = control_frame(running, i);
            before[i].iseq = cfp[PW_CFP_ISEQ];
            before[i].ep = cfp[PW_CFP_EP];
            before[i].place = cfp[PW_CFP_ISEQ] ? cfp[PW_CFP_PC] : ((VALUE *)cfp[PW_CFP_EP])[PW_EP_ME_CREF];
        }
        if (now && !w.keys[now - 1].ep) before[now - 1].ep = 0;
        depth = now;
    }
}

/* The walk leaves out frames next to the root and counts them. `same` is 0 whenever that number changes. */
TEST(a_stack_that_is_deeper_than_there_is_room)
{
    begin();
    for (int i = 0; i < 16; i++) push_method(&codes[i % CODES]);
    pw_walk w = new_walk(16);
    pw_walk_stack(&w);
    EQUAL(0, w.cut);
    expect_stack(&w);
    for (int i = 0; i < 24; i++) push_method(&codes[(i + 5) % CODES]);
    EQUAL(0, pw_walk_stack(&w));
    EQUAL(24, w.cut);
    expect_part(&w, running, 24, 40);
    EQUAL(16, pw_walk_stack(&w));
    pop();
    EQUAL(0, pw_walk_stack(&w));
    EQUAL(23, w.cut);
    expect_part(&w, running, 23, 39);
    pop_to(16);
    EQUAL(0, pw_walk_stack(&w));
    EQUAL(0, w.cut);
    expect_stack(&w);
}

/* Control frames fill the whole VM stack. */
TEST(a_stack_that_is_full)
{
    static const VALUE *cfp;
    begin();
    push_method(&codes[0]);
    pw_walk w = new_walk(50);
    pw_walk_stack(&w);
    expect_stack(&w);
    cfp = main_fiber.base;
    cfp += (STACK_WORDS - PW_ROOT_FRAMES * PW_CFP_WORDS) % PW_CFP_WORDS; /* the lowest place in which a frame can lie */
    main_fiber.ec[PW_EC_CFP] = (VALUE)cfp;
    memset((void *)cfp, 0, (size_t)(control_frame(running, 0) - cfp) * sizeof(VALUE));
    pw_walk_stack(&w);
    EQUAL(50, w.depth);
    EQUAL((STACK_WORDS - PW_ROOT_FRAMES * PW_CFP_WORDS) / PW_CFP_WORDS - 50, w.cut);
    EQUAL(0, pw_walk_listed(&w, 50)); /* frames of zeros are not listed */
}

TEST(a_leaf_out_of_range_is_no_stack)
{
    begin();
    for (int i = 0; i < 5; i++) push_method(&codes[i]);
    VALUE right = main_fiber.ec[PW_EC_CFP], end = (VALUE)main_fiber.end, base = (VALUE)main_fiber.base;
    VALUE wrong[] = {0, 8, base - PW_CFP_BYTES, base - 8, end + PW_CFP_BYTES, end + 8, right + 8, right - 8, right + 4,
                     nowhere(), ~(VALUE)0, (VALUE)1 << 60, end - PW_ROOT_FRAMES * PW_CFP_BYTES + PW_CFP_BYTES};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pw_walk w = new_walk(50);
        uint32_t same;
        pw_frame_seen seen;
        main_fiber.ec[PW_EC_CFP] = right;
        pw_walk_stack(&w);
        EQUAL(5, w.depth);
        main_fiber.ec[PW_EC_CFP] = wrong[i];
        unit_note("leaf number %zu, 0x%" PRIx64, i, (uint64_t)wrong[i]);
        EQUAL(PW_TORN, pw_walk_outside(&w, &same));
        EQUAL(0, pw_walk_stack(&w));
        EQUAL(0, w.depth);
        CHECK(!pw_walk_look(main_fiber.ec, main_fiber.end - PW_CFP_WORDS, &seen));
        EQUAL(0, pw_walk_owner(main_fiber.ec, (VALUE *)right));
    }
}

TEST(a_context_without_a_stack)
{
    begin();
    push_method(&codes[0]);
    pw_walk w = new_walk(50);
    VALUE base = main_fiber.ec[PW_EC_STACK], words = main_fiber.ec[PW_EC_STACK_WORDS];
    main_fiber.ec[PW_EC_STACK] = 0;
    EQUAL(0, pw_walk_stack(&w));
    EQUAL(0, w.depth);
    main_fiber.ec[PW_EC_STACK] = base;
    main_fiber.ec[PW_EC_STACK_WORDS] = ((VALUE)1 << 32) + 1;
    EQUAL(0, pw_walk_stack(&w));
    main_fiber.ec[PW_EC_STACK_WORDS] = 0;
    EQUAL(0, pw_walk_stack(&w));
    main_fiber.ec[PW_EC_STACK_WORDS] = words;
    pw_walk_stack(&w);
    EQUAL(1, w.depth);
    EQUAL(0, pw_walk_context(&w, NULL));
    EQUAL(0, w.depth);
    switch_fiber(NULL);
    EQUAL(0, pw_walk_stack(&w));
}

/* ---- the frame on top, half pushed ---- */

/* Each word of the frame and of its environment has an old value once. The walk must see the frames below unchanged and
 * read no unmapped address. Once the frame is complete, the next walk must see it. */
TEST(a_half_pushed_frame)
{
    begin();
    push_method(&codes[1]);
    push_block(&codes[2]);
    push_c_function(c_functions[0]);
    uint32_t below = running->depth;
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0) push_method(&codes[4]);
        else if (kind == 1) push_c_function(c_functions[1]);
        else push_top(&codes[5]);
        VALUE *cfp = leaf(), *ep = (VALUE *)cfp[PW_CFP_EP];
        VALUE *places[] = {&cfp[PW_CFP_PC], &cfp[PW_CFP_SP], &cfp[PW_CFP_ISEQ], &cfp[PW_CFP_EP],
                           &ep[PW_EP_ME_CREF], &ep[PW_EP_SPECVAL], &ep[PW_EP_FLAGS]};
        VALUE words[] = {0, 1, 3, 8, Qnil, nowhere(), nowhere() - 8, ~(VALUE)0, (VALUE)1 << 62,
                         cref, codes[3].iseq, codes[3].entry, c_functions[2],
                         (VALUE)main_fiber.base, (VALUE)main_fiber.end, (VALUE)main_fiber.base + 8,
                         pc_at(&codes[6], 2), (VALUE)BLOCK << 16 | TAG};
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
                pw_walk w = new_walk(50);
                VALUE right = *places[p];
                *places[p] = words[i];
                pw_walk_stack(&w);
                *places[p] = right;
                EQUAL(below + 1, w.depth);
                w.depth = below;
                expect_part(&w, running, 0, below);
                w.depth = below + 1;
                unit_note("kind %d, place %zu, word %zu", kind, p, i);
                const pw_frame_seen *seen = &w.seen[below];
                VALUE frame = seen->frame;
                CHECK(!frame || frame == running->frames[below].frame || frame == words[i]);
                pw_walk_stack(&w);
                /* Some old words make a complete frame. Nothing shows then that the frame is half pushed. */
                bool of_method = places[p] == &ep[PW_EP_ME_CREF];
                if (of_method && (words[i] == 0 || words[i] == cref)) continue;
                if (of_method && (words[i] == codes[3].entry || words[i] == c_functions[2])) continue;
                if (frame && frame == words[i]) continue;
                expect_stack(&w);
            }
        }
        pop();
    }
}

/* A method entry may point to a definition that is gone. */
TEST(a_method_entry_that_leads_nowhere)
{
    begin();
    push_method(&codes[1]);
    VALUE *entry = (VALUE *)method_entry_of(PW_METHOD_CFUNC, 0), wrong[] = {0, 8, nowhere(), ~(VALUE)0};
    push_c_function((VALUE)entry);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pw_walk w = new_walk(50);
        VALUE right = entry[PW_ME_DEF];
        entry[PW_ME_DEF] = wrong[i];
        pw_walk_stack(&w);
        EQUAL(2, w.depth);
        EQUAL(0, w.seen[1].frame);
        EQUAL(1, pw_walk_listed(&w, 2));
        entry[PW_ME_DEF] = right;
        EQUAL(1, pw_walk_stack(&w)); /* looked at once more */
        expect_stack(&w);
    }
}

/* ---- lines ---- */

TEST(a_pc_that_is_not_of_this_code_stands_for_its_first_line)
{
    begin();
    push_method(&codes[3]);
    VALUE first = (VALUE)codes[3].encoded, last = first + codes[3].size * sizeof(VALUE);
    struct { VALUE pc; int line; } cases[] = {
        {first, 4000}, {first + 8, 4000}, {first + 16, 4001}, {last, 3999 + (int)codes[3].size}, {last + 8, 4000},
        {first - 8, 4000}, {pc_at(&codes[4], 3), 4000}, {8, 4000}, {~(VALUE)0, 4000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pw_walk w = new_walk(50);
        unit_note("pc number %zu", i);
        leaf()[PW_CFP_PC] = cases[i].pc;
        pw_walk_stack(&w);
        EQUAL(codes[3].iseq, w.seen[0].frame);
        EQUAL(cases[i].line, w.seen[0].line);
        EQUAL(codes[3].iseq, (pw_walk_stack(&w), w.seen[0].frame));
    }
}

/* Compiled code pushes methods and blocks without a pc. Ruby lists other frames without a pc only up to 3.1. */
TEST(frames_without_a_pc)
{
    begin();
    push_method(&codes[0]);
    leaf()[PW_CFP_PC] = 0;
    push_block(&codes[1]);
    leaf()[PW_CFP_PC] = 0;
    push_top(&codes[2]);
    leaf()[PW_CFP_PC] = 0;
    push_method(&codes[3]);
    pw_walk w = new_walk(50);
    pw_walk_stack(&w);
    if (PW_RUBY_FRAME_HAS_PC) running->frames[2].frame = 0;
    EQUAL(codes[0].iseq, w.seen[0].frame);
    EQUAL(1000, w.seen[0].line);
    EQUAL(codes[1].iseq, w.seen[1].frame);
    EQUAL(PW_RUBY_FRAME_HAS_PC ? 0 : codes[2].iseq, w.seen[2].frame);
    EQUAL(codes[3].iseq, w.seen[3].frame);
}

/* ---- owners ---- */

TEST(the_owner_is_found_through_environments)
{
    begin();
    push_method(&codes[0]);
    VALUE *svar = internal_object(PW_IMEMO_SVAR), *escaped = guarded(3 * sizeof(VALUE)) + 2;
    VALUE *ep = running->frames[0].ep;
    svar[PW_SVAR_CREF_OR_ME] = codes[0].entry;
    ep[PW_EP_ME_CREF] = (VALUE)svar; /* as in a method that uses $~ */
    push_block(&codes[1]);
    pw_walk w = new_walk(50);
    pw_walk_stack(&w);
    expect_stack(&w);
    memcpy(escaped - 2, ep - 2, 3 * sizeof(VALUE)); /* the environment moves to the heap */
    main_fiber.frames[0].ep = escaped;
    control_frame(running, 0)[PW_CFP_EP] = (VALUE)escaped;
    running->frames[1].ep[PW_EP_SPECVAL] = (VALUE)escaped | 1;
    ep[PW_EP_FLAGS] = codes[5].iseq; /* the old place holds an object instead of flags */
    pw_walk_stack(&w);
    expect_stack(&w);
    svar[PW_SVAR_CREF_OR_ME] = cref;
    main_fiber.frames[0].owner = main_fiber.frames[1].owner = 0;
    w = new_walk(50);
    pw_walk_stack(&w);
    expect_stack(&w);
    EQUAL(0, pw_walk_owner(main_fiber.ec, control_frame(running, 0)));
    svar[PW_SVAR_CREF_OR_ME] = codes[0].entry;
    EQUAL(codes[0].entry, pw_walk_owner(main_fiber.ec, control_frame(running, 1)));
}

/* Environments below the top that form an endless chain, or hold no method entry. */
TEST(an_owner_that_cannot_be_told_is_doubtful)
{
    begin();
    push_method(&codes[0]);
    push_block(&codes[1]);
    push_method(&codes[2]);
    VALUE *ep = running->frames[1].ep, *below = running->frames[0].ep;
    pw_walk w = new_walk(50);
    ep[PW_EP_SPECVAL] = (VALUE)ep; /* its own parent */
    pw_walk_stack(&w);
    EQUAL(codes[1].iseq, w.seen[1].frame);
    EQUAL(PW_DOUBTFUL, w.seen[1].owner);
    EQUAL(0, w.keys[1].ep);
    EQUAL(0, pw_walk_owner(main_fiber.ec, control_frame(running, 1)));
    ep[PW_EP_SPECVAL] = (VALUE)below | 1;
    below[PW_EP_ME_CREF] = codes[3].iseq; /* neither a method entry nor a cref */
    w = new_walk(50);
    pw_walk_stack(&w);
    EQUAL(PW_DOUBTFUL, w.seen[0].owner);
    EQUAL(PW_DOUBTFUL, w.seen[1].owner);
    below[PW_EP_ME_CREF] = codes[0].entry;
    EQUAL(0, pw_walk_stack(&w)); /* looked at again */
    expect_stack(&w);
}

TEST(of_known_frames_no_owner_is_looked_for)
{
    begin();
    push_method(&codes[0]);
    push_method(&codes[1]);
    pw_known_add(codes[0].iseq);
    CHECK(pw_known(codes[0].iseq) && !pw_known(codes[1].iseq));
    pw_walk w = new_walk(50);
    w.every_owner = false;
    pw_walk_stack(&w);
    EQUAL(0, w.seen[0].owner);
    EQUAL(1000, w.seen[0].line);
    EQUAL(codes[1].entry, w.seen[1].owner);
    pw_walk all = new_walk(50);
    pw_walk_stack(&all);
    expect_stack(&all);
}

/* ---- walks of hooks ---- */

static uint32_t frames_met;

static void
meet(const VALUE *cfp, const pw_frame_seen *seen, void *data)
{
    while (!running->frames[frames_met].frame) frames_met++;
    EQUAL(data, &frames_met);
    EQUAL(control_frame(running, frames_met), cfp);
    EQUAL(running->frames[frames_met].frame, seen->frame);
    EQUAL(line_of_frame(running, frames_met), seen->line);
    frames_met++;
}

TEST(frames_from_the_root_to_a_leaf)
{
    begin();
    push_method(&codes[0]);
    push_c_block();
    push_c_function(c_functions[0]);
    push_method(&codes[1]);
    push_method(&codes[2]);
    frames_met = 0;
    pw_walk_frames(main_fiber.ec, control_frame(running, 3), meet, &frames_met);
    EQUAL(4, frames_met);
    frames_met = 0;
    pw_walk_frames(main_fiber.ec, main_fiber.base, meet, &frames_met); /* ends at the real leaf */
    EQUAL(5, frames_met);
    push_c_function(c_functions[1]);
    EQUAL(control_frame(running, 4), pw_walk_innermost(main_fiber.ec, leaf()));
    EQUAL(control_frame(running, 3), pw_walk_innermost(main_fiber.ec, control_frame(running, 3)));
    pop_to(0);
    push_c_function(c_functions[0]);
    EQUAL(NULL, pw_walk_innermost(main_fiber.ec, leaf()));
    EQUAL(true, pw_frame_is_iseq(codes[0].iseq));
    EQUAL(false, pw_frame_is_iseq(codes[0].entry));
    EQUAL(true, pw_method_is_ruby(codes[0].entry));
    EQUAL(false, pw_method_is_ruby(c_functions[0]));
    EQUAL(false, pw_method_is_ruby(codes[0].iseq));
}

/* ---- the proof ---- */

TEST(without_the_proof_nothing_is_walked)
{
    begin();
    int right = lesson_tests;
    lesson_tests = right - 1;
    pw_walk_tests_init(0);
    CHECK(!pw_walk_in_use() && !pw_walk_own() && pw_walk_refusal());
    VALUE *data = guarded(8 * sizeof(VALUE));
    pw_walk w = new_walk(10);
    pw_walk_aim(&w, (VALUE)data);
    EQUAL(NULL, w.thread);
    lesson_tests = right;
    pw_walk_tests_init(0);
    CHECK(pw_walk_in_use() && !pw_walk_refusal());
}

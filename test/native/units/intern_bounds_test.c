/* The tables of frames, nodes and strings at their bounds: full, emptied, and without memory.
 *
 * sources: intern.c
 * wraps: malloc calloc realloc free */
#include "intern_table.h"

TEST(nodes_frames_or_strings_make_it_full)
{
    char text[32];
    begin();
    for (uint32_t i = 1; i <= PW_MAX_NODES; i++) {
        CHECK(!pw_intern_full(&table));
        pw_intern_node(&table, 0, frame_of(0), 0, i);
    }
    CHECK(pw_intern_full(&table));
    end();
    begin();
    for (uint32_t i = 1; i < PW_MAX_FRAMES; i++) {
        CHECK(!pw_intern_full(&table));
        pw_intern_frame(&table, frame_of(i), 0);
    }
    CHECK(pw_intern_full(&table));
    end();
    begin();
    for (uint32_t i = 1; i <= PW_MAX_STRINGS; i++) {
        CHECK(!pw_intern_full(&table));
        pw_intern_string(&table, text, (size_t)snprintf(text, sizeof text, "%u", i));
    }
    CHECK(pw_intern_full(&table));
    end();
}

static void
fill(uint32_t many)
{
    char text[32];
    for (uint32_t i = 1; i <= many; i++) {
        EQUAL(i, pw_intern_node(&table, i - 1, frame_of(i), frame_of(100000 + i), i));
        EQUAL(i, pw_intern_string(&table, text, (size_t)snprintf(text, sizeof text, "%u", i)));
    }
}

TEST(emptied_tables_go_on_counting)
{
    pw_intern before;
    uint32_t many = 5000;
    begin();
    fill(many);
    let_wait(10);
    CHECK(pw_intern_reset(&table, &before));
    EQUAL(0, table.node_count);
    EQUAL(0, table.string_count);
    EQUAL(0, table.unresolved_from);
    EQUAL(1, table.frame_count);
    EQUAL(PW_FRAME_NOT_SAMPLED, table.frames[0].frame);
    CHECK(!pw_intern_full(&table));
    /* The old tables still know the owners. */
    EQUAL(frame_of(100001), pw_intern_owner(&before, frame_of(1)));
    EQUAL(PW_DOUBTFUL, pw_intern_owner(&before, frame_of(10)));
    EQUAL(0, pw_intern_owner(&table, frame_of(1)));
    /* The first frame after the reset has the next number. */
    EQUAL(many + 2, table.frames[0].id);
    EQUAL(many + 3, pw_intern_frame(&table, frame_of(1), 0));
    EQUAL(many + 1, pw_intern_node(&table, 0, frame_of(1), 0, 1));
    EQUAL(many + 1, pw_intern_string(&table, "1", 1));
    /* Nodes and strings that are not yet written stay, and new ones continue their numbers. */
    EQUAL(many + 1, table.new_nodes);
    EQUAL(1, table.first_new_node);
    EQUAL(many + 1, table.new_strings);
    pw_intern_forget(&before);
    EQUAL(many + 1, pw_intern_node(&table, 0, frame_of(1), 0, 1));
    end();
}

TEST(frames_without_a_name_move_with_their_numbers)
{
    pw_intern before;
    begin();
    fill(20);
    for (uint32_t i = 0; i <= 20; i++) table.frames[i].resolved = i != 0 && i != 7 && i != 20;
    table.unresolved_from = 0;
    CHECK(pw_intern_reset(&table, &before));
    pw_intern_carry_nameless(&table, &before);
    EQUAL(3, table.frame_count);
    EQUAL(0, table.unresolved_from);
    EQUAL(1, table.frames[0].id); /* the frame that each table begins with */
    EQUAL(8, pw_intern_frame(&table, frame_of(7), 0));
    EQUAL(frame_of(100007), pw_intern_owner(&table, frame_of(7)));
    EQUAL(21, pw_intern_frame(&table, frame_of(20), 0));
    EQUAL(23, pw_intern_frame(&table, frame_of(8), 0)); /* it has a name: a new number, a new name */
    pw_intern_forget(&before);
    end();
}

TEST(a_reset_without_memory_changes_nothing)
{
    for (long refused = 1; refused <= 4; refused++) {
        pw_intern before;
        begin();
        fill(3000);
        long held = memory_held;
        unit_note("request %ld is refused", refused);
        memory_fails(refused, refused);
        CHECK(!pw_intern_reset(&table, &before));
        memory_fails(0, 0);
        EQUAL(held, memory_held);
        EQUAL(true, pw_memory_refused);
        for (uint32_t i = 1; i <= 3000; i++) {
            EQUAL(i, pw_intern_node(&table, i - 1, frame_of(i), 0, i));
            EQUAL(i + 1, pw_intern_frame(&table, frame_of(i), 0));
        }
        EQUAL(3000, table.node_count);
        end();
    }
}

TEST(a_beginning_without_memory_says_so)
{
    for (long refused = 1; refused <= 4; refused++) {
        unit_note("request %ld is refused", refused);
        pw_memory_refused = false;
        memory_fails(refused, refused);
        CHECK(!pw_intern_init(&table));
        memory_fails(0, 0);
        end();
    }
}

/* ---- without memory ---- */

enum { STEPS = 3000 };

static void
step(uint32_t i, uint32_t found[3])
{
    char text[3000];
    memset(text, 'a', sizeof text);
    int length = snprintf(text, sizeof text, "%u", i);
    text[length] = 'a';
    found[0] = pw_intern_node(&table, 0, frame_of(i), 0, i);
    found[1] = pw_intern_frame(&table, frame_of(i), 0);
    found[2] = pw_intern_string(&table, text, (size_t)length + (i % 40 == 0 ? 2900 : 0));
}

/* Refuses one request for memory and all requests after it; each request in turn is the first. Things known before keep
 * their numbers. A new node gets its parent's number; a new frame or string gets 0. */
TEST(known_things_are_found_when_no_memory_is_left)
{
    long requests;
    uint32_t numbers[STEPS][3];
    begin();
    for (uint32_t i = 0; i < STEPS; i++) step(i, numbers[i]);
    requests = memory_asked;
    end();
    CHECK(requests > 20);
    for (long refused = 1; refused < requests - 4; refused++) {
        begin();
        memory_fails(refused, 1L << 40);
        uint32_t reached = 0, found[3];
        while (reached < STEPS && !memory_refused) {
            unit_note("request %ld is refused, step %u", refused, reached);
            step(reached++, found);
            for (int j = 0; j < 3 && !memory_refused; j++) EQUAL(numbers[reached - 1][j], found[j]);
        }
        EQUAL(true, pw_lacks_memory());
        CHECK(reached < STEPS);
        uint32_t nodes = table.node_count, frames = table.frame_count, strings = table.string_count;
        for (uint32_t i = 0; i < reached - 1; i++) {
            unit_note("request %ld is refused at step %u; step %u once more", refused, reached - 1, i);
            step(i, found);
            for (int j = 0; j < 3; j++) EQUAL(numbers[i][j], found[j]);
        }
        for (uint32_t i = STEPS; i < 3 * STEPS; i++) {
            EQUAL(7, pw_intern_node(&table, 7, frame_of(i), 0, 1));
            EQUAL(0, pw_intern_frame(&table, frame_of(i), 0));
            EQUAL(0, pw_intern_string(&table, (const char *)&i, sizeof i));
        }
        if (frames > 1) { /* a waiting frame does not move */
            let_wait(1);
            pw_intern_tell_owner(&table, frame_of(0), frame_of(9999));
            EQUAL(frame_of(0), table.frames[1].frame);
        }
        EQUAL(nodes, table.node_count);
        EQUAL(frames, table.frame_count);
        EQUAL(strings, table.string_count);
        end();
    }
}

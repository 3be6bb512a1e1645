/* The tables of frames, stack-tree nodes and strings: each thing keeps one number.
 *
 * sources: intern.c
 * wraps: malloc calloc realloc free */
#include "intern_table.h"

/* ---- nodes ---- */

TEST(the_same_stack_has_the_same_node)
{
    begin();
    uint32_t root = pw_intern_node(&table, 0, frame_of(1), 0, 3);
    uint32_t leaf = pw_intern_node(&table, root, frame_of(2), 0, 5);
    EQUAL(1, root);
    EQUAL(2, leaf);
    for (int i = 0; i < 3; i++) {
        EQUAL(root, pw_intern_node(&table, 0, frame_of(1), 0, 3));
        EQUAL(leaf, pw_intern_node(&table, root, frame_of(2), 0, 5));
    }
    EQUAL(2, table.node_count);
    EQUAL(2, table.new_nodes);
    end();
}

TEST(another_parent_frame_or_line_is_another_node)
{
    begin();
    uint32_t root = pw_intern_node(&table, 0, frame_of(1), 0, 3);
    uint32_t leaf = pw_intern_node(&table, root, frame_of(2), 0, 5);
    EQUAL(3, pw_intern_node(&table, leaf, frame_of(2), 0, 5));
    EQUAL(4, pw_intern_node(&table, root, frame_of(3), 0, 5));
    EQUAL(5, pw_intern_node(&table, root, frame_of(2), 0, 6));
    EQUAL(6, pw_intern_node(&table, 0, frame_of(2), 0, 5));
    EQUAL(leaf, pw_intern_node(&table, root, frame_of(2), 0, 5));
    end();
}

typedef struct { uint32_t parent, frame, line; } plain_node;

/* The oracle: a linear search through all nodes. */
static uint32_t
oracle_node(plain_node *nodes, uint32_t *count, uint32_t most, uint32_t parent, uint32_t frame, uint32_t line)
{
    for (uint32_t id = 1; id <= *count; id++) {
        if (nodes[id].parent == parent && nodes[id].frame == frame && nodes[id].line == line) return id;
    }
    CHECK(*count + 1 < most);
    nodes[++*count] = (plain_node){parent, frame, line};
    return *count;
}

/* Random stacks share a part next to the root, as a program's stacks do. The test also decodes what will be written. */
TEST(random_stacks_agree_with_a_list_of_parents)
{
    enum { MOST = 1 << 14 };
    static plain_node nodes[MOST];
    uint32_t count = 0, stack[40], depth = 0;
    begin();
    for (uint32_t turn = 0; turn < unit_rounds(3000); turn++) {
        depth = unit_random(depth + 1);
        uint32_t fresh = unit_random(12);
        while (fresh-- > 0 && depth < 40) stack[depth++] = unit_random(5) << 8 | unit_random(3);
        uint32_t expected = 0, actual = 0;
        for (uint32_t i = 0; i < depth; i++) {
            unit_note("turn %u, frame %u of %u", turn, i, depth);
            uint32_t frame = stack[i] >> 8, line = stack[i] & 0xff;
            expected = oracle_node(nodes, &count, MOST, expected, frame, line);
            actual = pw_intern_node(&table, actual, frame_of(frame), 0, line);
            EQUAL(expected, actual);
        }
    }
    EQUAL(count, table.node_count);
    EQUAL(count, table.new_nodes);
    EQUAL(1, table.first_new_node);
    CHECK(count > 4500 || unit_quick); /* the table has grown */
    reader parents = {&table.new_parents, 0}, frames = {&table.new_frames, 0}, lines = {&table.new_lines, 0};
    for (uint32_t id = 1; id <= count; id++) {
        unit_note("node %u", id);
        EQUAL(nodes[id].parent, id - next_int(&parents));
        EQUAL(pw_intern_frame(&table, frame_of(nodes[id].frame), 0), next_int(&frames));
        EQUAL(nodes[id].line, next_int(&lines));
    }
    EQUAL(table.new_parents.size, parents.at);
    EQUAL(table.new_frames.size, frames.at);
    EQUAL(table.new_lines.size, lines.at);
    end();
}

/* Twice the bound, which drain.c allows while frames wait for names. Each node keeps its number. */
TEST(many_nodes_keep_their_numbers)
{
    enum { MANY = 2 * PW_MAX_NODES };
    begin();
    uint32_t parent = 0, many = unit_rounds(MANY);
    for (uint32_t id = 1; id <= many; id++) {
        unit_note("node %u", id);
        EQUAL(id, pw_intern_node(&table, parent, frame_of(id % 1000), 0, id));
        if (id % 7 == 0) parent = unit_random(id);
    }
    CHECK(table.node_slots >= 2 * table.node_count);
    uint64_t state = unit_seed * 0x9e3779b97f4a7c15u | 1; /* the same parents again */
    parent = 0;
    for (uint32_t id = 1; id <= many; id++) {
        unit_note("node %u once more", id);
        EQUAL(id, pw_intern_node(&table, parent, frame_of(id % 1000), 0, id));
        if (id % 7 == 0) parent = (uint32_t)((unit_random_of(&state) >> 32) % id);
    }
    EQUAL(many, table.node_count);
    end();
}

/* Callers with a tree of their own use it: the node gets a number and is written, but no lookup finds it. */
TEST(a_node_that_is_known_to_be_new_takes_no_memory)
{
    begin();
    EQUAL(1, pw_intern_node(&table, 0, frame_of(1), 0, 0));
    EQUAL(2, pw_intern_new_node(&table, 1, frame_of(2), 0, 0));
    EQUAL(3, pw_intern_new_node(&table, 1, frame_of(2), 0, 0));
    EQUAL(4, pw_intern_node(&table, 1, frame_of(2), 0, 0));
    EQUAL(2, table.node_count);
    EQUAL(4, table.new_nodes);
    reader parents = {&table.new_parents, 0};
    uint32_t expected[] = {1, 1, 2, 3};
    for (int i = 0; i < 4; i++) EQUAL(expected[i], next_int(&parents));
    end();
}

/* ---- frames ---- */

/* The frame gets its name with the first ones: later a name may no longer be available. */
TEST(the_frame_for_what_is_not_sampled_is_there_from_the_start)
{
    begin();
    EQUAL(1, table.frame_count);
    EQUAL(PW_FRAME_NOT_SAMPLED, table.frames[0].frame);
    EQUAL(1, pw_intern_frame(&table, PW_FRAME_NOT_SAMPLED, 0));
    end();
}

TEST(frames_keep_their_numbers_while_the_tables_grow)
{
    begin();
    for (uint32_t i = 1; i < 20000; i++) {
        unit_note("frame %u", i);
        EQUAL(i + 1, pw_intern_frame(&table, frame_of(i), 0));
        uint32_t again = 1 + unit_random(i);
        EQUAL(again + 1, pw_intern_frame(&table, frame_of(again), 0));
    }
    EQUAL(20000, table.frame_count);
    for (uint32_t i = 1; i < 20000; i++) {
        EQUAL(frame_of(i), table.frames[i].frame);
        EQUAL(i + 1, table.frames[i].id);
    }
    end();
}

TEST(the_first_owner_that_is_one_counts)
{
    begin();
    uint32_t id = pw_intern_frame(&table, frame_of(1), PW_DOUBTFUL);
    pw_frame_entry *entry = &table.frames[1];
    EQUAL(PW_DOUBTFUL, pw_intern_owner(&table, frame_of(1)));
    EQUAL(id, pw_intern_frame(&table, frame_of(1), 0));
    EQUAL(PW_DOUBTFUL, entry->owner);
    pw_intern_tell_owner(&table, frame_of(1), frame_of(50));
    EQUAL(frame_of(50), pw_intern_owner(&table, frame_of(1)));
    EQUAL(id, pw_intern_frame(&table, frame_of(1), frame_of(51)));
    pw_intern_tell_owner(&table, frame_of(1), PW_DOUBTFUL);
    EQUAL(frame_of(50), pw_intern_owner(&table, frame_of(1)));
    EQUAL(0, pw_intern_owner(&table, frame_of(2))); /* not known at all */
    pw_intern_tell_owner(&table, frame_of(2), frame_of(52));
    EQUAL(2, table.frame_count);
    end();
}

TEST(a_frame_that_has_its_name_takes_no_owner_any_more)
{
    begin();
    pw_intern_frame(&table, frame_of(1), 0);
    table.frames[1].resolved = true;
    pw_intern_frame(&table, frame_of(1), frame_of(50));
    EQUAL(0, pw_intern_owner(&table, frame_of(1)));
    end();
}

TEST(an_owner_ends_the_waiting_and_the_number_stays)
{
    begin();
    uint32_t id = pw_intern_frame(&table, frame_of(1), 0), other = pw_intern_frame(&table, frame_of(2), 0);
    let_wait(1);
    EQUAL(PW_DOUBTFUL, pw_intern_owner(&table, frame_of(1)));
    EQUAL(id, pw_intern_frame(&table, frame_of(1), PW_DOUBTFUL)); /* that is no owner */
    CHECK(table.frames[1].waiting);
    EQUAL(id, pw_intern_frame(&table, frame_of(1), frame_of(50)));
    EQUAL(4, table.frame_count);
    CHECK(table.frames[1].resolved && !table.frames[1].waiting && !table.frames[1].frame && !table.frames[1].owner);
    EQUAL(frame_of(1), table.frames[3].frame);
    EQUAL(frame_of(50), table.frames[3].owner);
    EQUAL(id, table.frames[3].id);
    CHECK(!table.frames[3].resolved && !table.frames[3].waited && !table.frames[3].waiting);
    EQUAL(id, pw_intern_frame(&table, frame_of(1), 0));
    EQUAL(other, pw_intern_frame(&table, frame_of(2), 0));
    EQUAL(4, table.frame_count);
    end();
}

TEST(all_waiting_ends_at_once)
{
    uint32_t ids[100];
    begin();
    for (uint32_t i = 0; i < 100; i++) ids[i] = pw_intern_frame(&table, frame_of(i), 0);
    CHECK(!pw_intern_end_waiting(&table));
    for (uint32_t i = 0; i < 100; i += 3) let_wait(i + 1);
    CHECK(pw_intern_end_waiting(&table));
    EQUAL(101 + 34, table.frame_count);
    for (uint32_t i = 0; i < 100; i++) {
        unit_note("frame %u", i);
        EQUAL(ids[i], pw_intern_frame(&table, frame_of(i), 0));
        EQUAL(i % 3 ? 0 : PW_DOUBTFUL, pw_intern_owner(&table, frame_of(i)));
    }
    for (uint32_t at = 101; at < 135; at++) {
        CHECK(table.frames[at].waited && !table.frames[at].waiting && !table.frames[at].resolved);
        EQUAL(frame_of((at - 101) * 3), table.frames[at].frame);
    }
    CHECK(!pw_intern_end_waiting(&table));
    end();
}

/* ---- strings ---- */

TEST(the_same_bytes_have_the_same_number)
{
    begin();
    EQUAL(0, pw_intern_string(&table, "anything", 0));
    EQUAL(1, pw_intern_string(&table, "abc", 3));
    EQUAL(2, pw_intern_string(&table, "ab", 2));
    EQUAL(3, pw_intern_string(&table, "abc\0d", 5));
    EQUAL(4, pw_intern_string(&table, "\0", 1));
    EQUAL(5, pw_intern_string(&table, "\xff\xfe", 2));
    EQUAL(1, pw_intern_string(&table, "abcd", 3));
    EQUAL(3, pw_intern_string(&table, "abc\0d", 5));
    EQUAL(4, pw_intern_string(&table, "\0", 1));
    EQUAL(5, table.new_strings);
    EQUAL(1, table.first_new_string);
    uint32_t lengths[] = {3, 2, 5, 1, 2};
    reader r = {&table.new_string_lengths, 0};
    for (int i = 0; i < 5; i++) EQUAL(lengths[i], next_int(&r));
    EQUAL(13, table.new_string_bytes.size);
    EQUAL(0, memcmp(table.new_string_bytes.data, "abcababc\0d\0\xff\xfe", 13));
    end();
}

TEST(a_string_is_cut_after_4096_bytes)
{
    static char bytes[8192];
    memset(bytes, 'x', sizeof bytes);
    begin();
    EQUAL(1, pw_intern_string(&table, bytes, sizeof bytes));
    EQUAL(4096, table.new_string_bytes.size);
    EQUAL(1, pw_intern_string(&table, bytes, 4096));
    EQUAL(1, pw_intern_string(&table, bytes, 4097));
    EQUAL(2, pw_intern_string(&table, bytes, 4095));
    end();
}

/* A lookup passes longer strings that begin with the same bytes. */
TEST(a_part_of_a_string_is_another_one)
{
    enum { LONGEST = 2000 };
    static char bytes[LONGEST];
    begin();
    for (int i = 0; i < LONGEST; i++) bytes[i] = (char)unit_random(256);
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 1; i < LONGEST; i++) {
            unit_note("%u bytes", LONGEST - i);
            EQUAL(i, pw_intern_string(&table, bytes, LONGEST - i));
        }
    }
    end();
}

TEST(many_strings_keep_their_numbers)
{
    char text[32];
    uint32_t many = unit_rounds(30000);
    begin();
    for (uint32_t i = 1; i <= many; i++) {
        unit_note("string %u", i);
        EQUAL(i, pw_intern_string(&table, text, (size_t)snprintf(text, sizeof text, "name %u", i * 7919)));
        uint32_t again = 1 + unit_random(i);
        EQUAL(again, pw_intern_string(&table, text, (size_t)snprintf(text, sizeof text, "name %u", again * 7919)));
    }
    EQUAL(many, table.string_count);
    CHECK(table.string_slots >= 2 * table.string_count);
    end();
}

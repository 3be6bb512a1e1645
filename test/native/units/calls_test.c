/* The tracer's tables: keys, and trees of nodes. One thread adds nodes while another thread reads the tree.
 *
 * sources: calls.c
 * wraps: malloc calloc realloc free
 * sanitizers: address thread */
#include "calls.h"
#include "failing_memory.h"
#include "intern.h"
#include "unit.h"
#include <pthread.h>

enum { KEYS_AT_MOST = 1 << 17 };

static long held_before;

static void
begin(pw_call_rules rules)
{
    memory_fails(0, 0);
    held_before = memory_held;
    pw_call_rules_now = rules;
}

static void
end(void)
{
    pw_calls_free(true);
    EQUAL(held_before, memory_held);
    EQUAL(0, pw_call_nodes());
    EQUAL(0, pw_call_lost());
}

static VALUE code(uint32_t n) { return 0x7f0000000000u + (VALUE)n * 40; }

/* Looks up a node as the tracer does: first among the eight children seen last. */
static pw_call_node *
child(pw_call_tree *tree, pw_call_node *node, VALUE a, VALUE b, uint8_t kind)
{
    pw_call_node *found = pw_call_child(node, a, b);
    return found ? found : pw_call_child_slow(tree, node, a, b, kind, NULL);
}

static pw_call_node *
ruby_child(pw_call_tree *tree, pw_call_node *node, uint32_t n)
{
    return child(tree, node, code(n), 0, PW_CALL_RUBY);
}

/* ---- nodes ---- */

TEST(the_same_call_has_the_same_node)
{
    begin((pw_call_rules){.max_nodes = 100});
    pw_call_tree *tree = pw_call_tree_new(7);
    EQUAL(7, tree->thread_id);
    CHECK(!pw_call_child(&tree->root, code(1), 0));
    pw_call_node *a = ruby_child(tree, &tree->root, 1), *b = ruby_child(tree, a, 2);
    EQUAL(a, pw_call_child(&tree->root, code(1), 0));
    EQUAL(b, ruby_child(tree, a, 2));
    EQUAL(&tree->root, a->parent);
    EQUAL(a, b->parent);
    EQUAL(1, a->depth);
    EQUAL(2, b->depth);
    EQUAL(code(2), b->key->a);
    EQUAL(code(2), b->key->frame);
    CHECK(ruby_child(tree, &tree->root, 2) != b);
    CHECK(ruby_child(tree, b, 2) != b); /* recursion goes deeper */
    CHECK(child(tree, a, code(2), 99, PW_CALL_C) != b);
    EQUAL(5, pw_call_nodes());
    EQUAL(0, pw_call_lost());
    end();
}

/* A node remembers the eight children seen last. The slow lookup finds the others and remembers them. */
TEST(eight_children_are_remembered)
{
    pw_call_node *nodes[20];
    begin((pw_call_rules){.max_nodes = 100});
    pw_call_tree *tree = pw_call_tree_new(1);
    for (uint32_t i = 0; i < 20; i++) nodes[i] = ruby_child(tree, &tree->root, i);
    for (uint32_t i = 0; i < 20; i++) EQUAL(i < 12 ? NULL : nodes[i], pw_call_child(&tree->root, code(i), 0));
    EQUAL(nodes[3], pw_call_child_slow(tree, &tree->root, code(3), 0, PW_CALL_RUBY, NULL));
    EQUAL(nodes[3], pw_call_child(&tree->root, code(3), 0));
    CHECK(!pw_call_child(&tree->root, code(12), 0)); /* was the oldest of the eight */
    EQUAL(20, pw_call_nodes());
    end();
}

typedef struct { uint32_t parent; VALUE a, b; pw_call_node *node; uint64_t calls; } plain_node;
typedef struct { const pw_call_tree *tree; plain_node *nodes; uint32_t count, seen; } list;

static void
check_node(pw_call_tree *tree, pw_call_node *node, void *data)
{
    list *l = data;
    EQUAL(l->tree, tree);
    if (node == &tree->root) {
        EQUAL(0, l->seen);
        l->seen = 1;
        return;
    }
    uint32_t n = 1;
    while (n < l->count && l->nodes[n].node != node) n++;
    unit_note("node %u of %u, the %u. visited", n, l->count, l->seen);
    CHECK(n < l->count);
    CHECK(n == l->seen); /* in the order in which they were made: parents first */
    EQUAL(l->nodes[l->nodes[n].parent].node, node->parent);
    EQUAL(l->nodes[n].a, node->a);
    EQUAL(l->nodes[n].b, node->b);
    EQUAL(l->nodes[n].a, node->key->a);
    EQUAL(l->nodes[n].b, node->key->b);
    EQUAL(node->parent->depth + 1, node->depth);
    EQUAL(l->nodes[n].calls, node->calls);
    l->seen++;
}

/* Calls and returns, and exceptions that leave several calls at once, against a list that is looked through from its
 * beginning. */
TEST(random_calls_agree_with_a_list_of_parents)
{
    enum { MOST = 6000 };
    static plain_node nodes[MOST];
    uint32_t count = 1, here = 0;
    begin((pw_call_rules){.max_nodes = MOST});
    pw_call_tree *tree = pw_call_tree_new(1);
    nodes[0].node = &tree->root;
    for (uint32_t turn = 0; turn < unit_rounds(60000) && count < MOST - 1; turn++) {
        unit_note("turn %u, node %u of %u", turn, here, count);
        uint32_t deep = nodes[here].node->depth, what = unit_random(10);
        if (deep > 0 && (what < 4 || deep > 40)) here = nodes[here].parent;
        else if (deep > 0 && what == 4) {
            for (uint32_t up = unit_random(deep) + 1; up > 0; up--) here = nodes[here].parent;
        }
        else {
            bool c = unit_random(4) == 0;
            VALUE a = code(unit_random(12)), b = c ? 100 + unit_random(3) : 0;
            uint32_t n = 1;
            while (n < count && (nodes[n].parent != here || nodes[n].a != a || nodes[n].b != b)) n++;
            pw_call_node *node = child(tree, nodes[here].node, a, b, c ? PW_CALL_C : PW_CALL_RUBY);
            if (n == count) nodes[count++] = (plain_node){here, a, b, node, 0};
            EQUAL(nodes[n].node, node);
            node->calls++;
            nodes[n].calls++;
            here = n;
        }
    }
    EQUAL(count - 1, pw_call_nodes());
    EQUAL(count - 1, tree->count);
    CHECK(count > 2000 || unit_quick);
    list l = {tree, nodes, count, 0};
    pw_call_nodes_each(tree, check_node, &l);
    EQUAL(count, l.seen);
    end();
}

/* ---- limits and filters ---- */

TEST(calls_beyond_the_most_nodes_are_lost_and_counted)
{
    begin((pw_call_rules){.max_nodes = 50});
    pw_call_tree *one = pw_call_tree_new(1), *other = pw_call_tree_new(2);
    for (uint32_t i = 0; i < 30; i++) CHECK(ruby_child(one, &one->root, i));
    for (uint32_t i = 0; i < 20; i++) CHECK(ruby_child(other, &other->root, i));
    for (uint32_t i = 0; i < 5; i++) CHECK(!ruby_child(one, &one->root, 100 + i));
    EQUAL(5, pw_call_lost());
    CHECK(!ruby_child(other, &other->root, 100));
    EQUAL(6, pw_call_lost());
    EQUAL(50, pw_call_nodes());
    for (uint32_t i = 0; i < 30; i++) CHECK(ruby_child(one, &one->root, i)); /* known ones go on */
    EQUAL(6, pw_call_lost());
    end();
}

TEST(calls_below_the_deepest_are_their_callers)
{
    begin((pw_call_rules){.max_nodes = 50, .max_depth = 3});
    pw_call_tree *tree = pw_call_tree_new(1);
    pw_call_node *node = &tree->root;
    for (uint32_t i = 0; i < 3; i++) node = ruby_child(tree, node, i);
    EQUAL(3, node->depth);
    EQUAL(node, ruby_child(tree, node, 3));
    EQUAL(node, pw_call_child(node, code(3), 0)); /* remembered as such */
    EQUAL(node, ruby_child(tree, node, 2));
    EQUAL(3, pw_call_nodes());
    EQUAL(0, pw_call_lost());
    end();
}

static uint32_t decisions;

/* Even ones are hidden, the ninth opens. */
static void
decide(pw_call_key *key, const void *context)
{
    uint32_t n = (uint32_t)((key->a - code(0)) / 40);
    CHECK(!context);
    decisions++;
    key->hidden = n % 2 == 0;
    key->opens = n == 9;
}

TEST(hidden_calls_are_their_callers_and_decided_once)
{
    begin((pw_call_rules){.max_nodes = 50, .decide = decide});
    decisions = 0;
    pw_call_tree *tree = pw_call_tree_new(1);
    pw_call_node *a = ruby_child(tree, &tree->root, 1);
    EQUAL(a, ruby_child(tree, a, 2));
    pw_call_node *b = ruby_child(tree, a, 3);
    EQUAL(a, b->parent);
    EQUAL(b, ruby_child(tree, b, 2));
    EQUAL(&tree->root, ruby_child(tree, &tree->root, 2));
    EQUAL(3, decisions);
    EQUAL(2, pw_call_nodes());
    end();
}

TEST(only_what_is_under_an_opening_call_has_nodes)
{
    begin((pw_call_rules){.max_nodes = 50, .decide = decide, .only_under = true});
    pw_call_tree *tree = pw_call_tree_new(1);
    EQUAL(&tree->root, ruby_child(tree, &tree->root, 1));
    pw_call_node *opens = ruby_child(tree, &tree->root, 9), *under = ruby_child(tree, opens, 1);
    EQUAL(&tree->root, opens->parent);
    EQUAL(opens, under->parent);
    CHECK(opens->under && under->under && !tree->root.under);
    EQUAL(under, ruby_child(tree, under, 2));
    EQUAL(2, pw_call_nodes());
    end();
}

/* ---- keys ---- */

static uint32_t keys_seen;

static void
see_key(const pw_call_key *key)
{
    EQUAL(code(keys_seen), key->a);
    keys_seen++;
}

TEST(each_callee_has_one_key)
{
    enum { MANY = 5000 };
    begin((pw_call_rules){.max_nodes = 3 * MANY});
    pw_call_tree *tree = pw_call_tree_new(1);
    const pw_call_key **keys = malloc(MANY * sizeof *keys);
    for (uint32_t i = 0; i < MANY; i++) keys[i] = ruby_child(tree, &tree->root, i)->key;
    pw_call_node *below = ruby_child(tree, &tree->root, 0);
    for (uint32_t i = 0; i < MANY; i++) EQUAL(keys[i], ruby_child(tree, below, i)->key);
    keys_seen = 0;
    pw_call_keys_each(see_key);
    EQUAL(MANY, keys_seen);
    free(keys);
    end();
}

/* A recording names a C function by its key's number: there is no method entry when its call is told. */
TEST(c_functions_are_known_by_number)
{
    begin((pw_call_rules){.max_nodes = 50});
    pw_call_tree *tree = pw_call_tree_new(1);
    pw_call_node *ruby = ruby_child(tree, &tree->root, 1);
    pw_call_node *c = child(tree, &tree->root, code(5), 77, PW_CALL_C);
    pw_call_node *met = child(tree, &tree->root, code(6), PW_CALL_MET, PW_CALL_C);
    EQUAL(code(1), ruby->key->frame);
    EQUAL(INT2FIX(PW_FRAME_CALLED + 1), c->key->frame);
    EQUAL(code(6), met->key->frame); /* its method entry */
    EQUAL(c->key, pw_call_key_of_frame(c->key->frame));
    EQUAL(ruby->key, pw_call_key_of_frame(INT2FIX(PW_FRAME_CALLED)));
    EQUAL(NULL, pw_call_key_of_frame(INT2FIX(PW_FRAME_CALLED + 3)));
    EQUAL(NULL, pw_call_key_of_frame(INT2FIX(PW_FRAME_CALLED - 1)));
    EQUAL(NULL, pw_call_key_of_frame(PW_FRAME_MARKING));
    end();
}

TEST(callees_beyond_the_most_keys_are_lost_and_counted)
{
    begin((pw_call_rules){.max_nodes = 2 * KEYS_AT_MOST});
    pw_call_tree *tree = pw_call_tree_new(1);
    for (uint32_t i = 0; i < KEYS_AT_MOST; i++) {
        unit_note("key %u", i);
        CHECK(ruby_child(tree, &tree->root, i));
    }
    CHECK(!ruby_child(tree, &tree->root, KEYS_AT_MOST));
    EQUAL(1, pw_call_lost());
    CHECK(ruby_child(tree, &tree->root, 5));
    end();
}

/* ---- trees ---- */

static uint32_t thread_ids[10], trees_seen;

static void
see_tree(pw_call_tree *tree, void *data)
{
    EQUAL(&trees_seen, data);
    CHECK(trees_seen < 10);
    thread_ids[trees_seen++] = tree->thread_id;
}

static void
expect_trees(uint32_t count, const uint32_t *ids)
{
    trees_seen = 0;
    pw_call_trees_each(see_tree, &trees_seen);
    EQUAL(count, trees_seen);
    for (uint32_t i = 0; i < count; i++) EQUAL(ids[i], thread_ids[i]);
}

TEST(settled_trees_leave_the_list)
{
    pw_call_tree *trees[5];
    begin((pw_call_rules){.max_nodes = 100});
    for (uint32_t i = 0; i < 5; i++) {
        trees[i] = pw_call_tree_new(i + 1);
        for (uint32_t j = 0; j < 10; j++) CHECK(ruby_child(trees[i], &trees[i]->root, j));
    }
    expect_trees(5, (uint32_t[]){5, 4, 3, 2, 1});
    trees[1]->settled = trees[2]->settled = trees[4]->settled = true;
    EQUAL(50, pw_call_nodes());
    pw_call_trees_sweep();
    expect_trees(3, (uint32_t[]){5, 4, 1}); /* the newest stays */
    EQUAL(30, pw_call_nodes());
    EQUAL(10, trees[2]->count); /* not freed yet: a thread with the GVL may still use it */
    long held = memory_held;
    CHECK(pw_call_tree_new(6));
    CHECK(memory_held < held);
    expect_trees(4, (uint32_t[]){6, 5, 4, 1});
    pw_call_trees_sweep();
    expect_trees(3, (uint32_t[]){6, 4, 1});
    EQUAL(20, pw_call_nodes());
    /* Swept nodes no longer count, so 80 more fit. */
    for (uint32_t j = 0; j < 80; j++) CHECK(ruby_child(trees[0], &trees[0]->root, 100 + j));
    end();
}

/* In a forked child the tables may be half changed. They are forgotten, and nothing in them is read or written. */
TEST(forgetting_touches_nothing)
{
    begin((pw_call_rules){.max_nodes = 100});
    pw_call_tree *tree = pw_call_tree_new(1);
    CHECK(ruby_child(tree, &tree->root, 1));
    struct pw_call_children *children = tree->root.children;
    long held = memory_held;
    pw_calls_free(false);
    EQUAL(held, memory_held);
    EQUAL(1, tree->count);
    expect_trees(0, NULL);
    keys_seen = 0;
    pw_call_keys_each(see_key);
    EQUAL(0, keys_seen);
    pw_call_tree *again = pw_call_tree_new(2);
    CHECK(ruby_child(again, &again->root, 1));
    expect_trees(1, (uint32_t[]){2});
    CHECK(tree->root.children == children);
    pw_calls_free(true);
    EQUAL(held, memory_held);
}

/* ---- without memory ---- */

/* What is refused is the node that is asked for. All others are found, the tree stays whole, and with memory it goes
 * on. */
TEST(refused_memory_leaves_the_tree_whole)
{
    enum { MOST = 1500 };
    static plain_node nodes[MOST + 1];
    for (long every = 2; every <= 9; every++) {
        uint32_t count = 1, refusals = 0;
        begin((pw_call_rules){.max_nodes = 10 * MOST});
        pw_call_tree *tree = pw_call_tree_new(1);
        nodes[0].node = &tree->root;
        for (uint32_t turn = 0; turn < 1000; turn++) {
            uint32_t from = unit_random(count);
            VALUE a = code(unit_random(300));
            uint32_t n = 1;
            while (n < count && (nodes[n].parent != from || nodes[n].a != a)) n++;
            unit_note("one of %ld refused, turn %u, node %u of %u", every, turn, n, count);
            memory_fails(turn % every ? 0 : 1 + unit_random(3), 1L << 40);
            pw_call_node *node = child(tree, nodes[from].node, a, 0, PW_CALL_RUBY);
            if (!node) {
                CHECK(memory_refused);
                refusals++;
                continue;
            }
            if (n == count) nodes[count++] = (plain_node){from, a, 0, node, 0};
            EQUAL(nodes[n].node, node);
        }
        memory_fails(0, 0);
        CHECK(refusals > 0);
        EQUAL(refusals, pw_call_lost());
        list l = {tree, nodes, count, 0};
        pw_call_nodes_each(tree, check_node, &l);
        EQUAL(count, l.seen);
        EQUAL(count - 1, pw_call_nodes());
        end();
    }
}

TEST(no_tree_without_memory)
{
    begin((pw_call_rules){.max_nodes = 10});
    memory_fails(1, 1);
    CHECK(!pw_call_tree_new(1));
    memory_fails(0, 0);
    expect_trees(0, NULL);
    end();
}

/* ---- beside the drain ---- */

enum { TREES = 40, NODES_A_TREE = 1500, CALLEES = 200, NEW_CALLEES = 50 }; /* each tree brings new ones */
static _Atomic bool over;

/* Numbers nodes as trace_writer.c does. A visible node is whole. The visit may have missed its parent, which was made
 * after the visit had passed its place: then the node waits for the next visit. */
static void
read_node(pw_call_tree *tree, pw_call_node *node, void *data)
{
    uint32_t *waiting = data;
    if (node == &tree->root) return;
    CHECK(node->parent);
    EQUAL(node->a, node->key->a);
    EQUAL(node->a, node->key->frame);
    EQUAL(node->parent->depth + 1, node->depth);
    if (node->parent == &tree->root || node->parent->id) node->id = node->depth;
    else ++*waiting;
}

static void
count_node(pw_call_tree *tree, pw_call_node *node, void *data)
{
    *(uint32_t *)data += node->id != 0;
}

/* After the tree has ended, one visit finds all there are. */
static void
read_tree(pw_call_tree *tree, void *data)
{
    bool ended = __atomic_load_n(&tree->ended, __ATOMIC_ACQUIRE);
    uint32_t waiting = 0, numbered = 0;
    pw_call_nodes_each(tree, read_node, &waiting);
    if (!ended) return;
    pw_call_nodes_each(tree, count_node, &numbered);
    EQUAL(0, waiting);
    EQUAL(NODES_A_TREE, numbered);
    tree->settled = true;
}

static void
read_key(const pw_call_key *key)
{
    CHECK(key->a >= code(0) && key->a < code(CALLEES + TREES * NEW_CALLEES));
    EQUAL(key->a, key->frame);
}

/* Reads all trees, again and again. */
static void *
drain(void *sweeps)
{
    while (!over) {
        for (int i = 0; i < 20; i++) pw_call_keys_each(read_key);
        pw_call_trees_each(read_tree, NULL);
        if (sweeps) pw_call_trees_sweep();
    }
    return NULL;
}

/* Threads with the GVL come one after the other; each has a tree of its own. */
static void
grow_trees(bool sweeps)
{
    pthread_t reader;
    begin((pw_call_rules){.max_nodes = TREES * NODES_A_TREE});
    over = false;
    EQUAL(0, pthread_create(&reader, NULL, drain, sweeps ? &over : NULL));
    for (uint32_t i = 0; i < unit_rounds(TREES); i++) {
        pw_call_tree *tree = pw_call_tree_new(i + 1);
        CHECK(tree);
        pw_call_node *node = &tree->root;
        while (tree->count < NODES_A_TREE) {
            if (node->depth > 30 || unit_random(4) == 0) node = &tree->root;
            node = ruby_child(tree, node, i * NEW_CALLEES + unit_random(CALLEES));
            CHECK(node);
            node->calls++;
        }
        __atomic_store_n(&tree->ended, true, __ATOMIC_RELEASE);
    }
    over = true;
    pthread_join(reader, NULL);
    pw_call_trees_each(read_tree, NULL);
    EQUAL(0, pw_call_lost());
    end();
}

TEST(a_reader_beside_growing_trees) { grow_trees(false); }

TEST(trees_leave_the_list_while_others_grow) { grow_trees(true); }

#include "collectors/trace/calls.h"
#include "output/intern.h"
#include <stdlib.h>
#include <string.h>

enum { KEYS_A_BLOCK = 1024, KEY_BLOCKS = 128, FIRST_NODES = 16, MOST_NODES = 256 };

/* A block of a tree's nodes. The first block is small, and each next block has twice the room, up to MOST_NODES.
 * A program may start thousands of threads, and most of those threads make few calls. */
struct pw_call_block {
    struct pw_call_block *next;
    _Atomic uint32_t used;
    uint32_t room;
    pw_call_node nodes[];
};

pw_call_rules pw_call_rules_now;

static struct {
    pw_call_key *key_blocks[KEY_BLOCKS];
    _Atomic uint32_t key_count;
    uint32_t *key_slots, key_slot_count; /* number of a key, plus 1 */
    pw_call_tree *_Atomic trees;
    pw_call_tree *_Atomic buried; /* out of the list, but a thread with the GVL may still be reading them */
    uint32_t node_count;
    uint64_t lost;
} state;

static uint64_t
mix(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

/* ---- keys ---- */

static pw_call_key *
key_at(uint32_t number)
{
    return &state.key_blocks[number / KEYS_A_BLOCK][number % KEYS_A_BLOCK];
}

static uint32_t
key_slot(VALUE a, VALUE b)
{
    uint32_t at = (uint32_t)mix(a ^ mix(b)) & (state.key_slot_count - 1);
    for (uint32_t number; (number = state.key_slots[at]) != 0; at = (at + 1) & (state.key_slot_count - 1)) {
        const pw_call_key *key = key_at(number - 1);
        if (key->a == a && key->b == b) break;
    }
    return at;
}

static bool
grow_keys(uint32_t count)
{
    uint32_t slots = state.key_slot_count ? state.key_slot_count * 2 : 1024;
    uint32_t *grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    free(state.key_slots);
    state.key_slots = grown;
    state.key_slot_count = slots;
    for (uint32_t i = 0; i < count; i++) state.key_slots[key_slot(key_at(i)->a, key_at(i)->b)] = i + 1;
    return true;
}

static const pw_call_key *
key_of(VALUE a, VALUE b, uint8_t kind, const void *context)
{
    uint32_t count = atomic_load_explicit(&state.key_count, memory_order_relaxed);
    if (count * 2 >= state.key_slot_count && !grow_keys(count)) return NULL;
    uint32_t at = key_slot(a, b);
    if (state.key_slots[at]) return key_at(state.key_slots[at] - 1);
    uint32_t block = count / KEYS_A_BLOCK;
    if (block >= KEY_BLOCKS) return NULL;
    if (!state.key_blocks[block] && !(state.key_blocks[block] = calloc(KEYS_A_BLOCK, sizeof(pw_call_key)))) return NULL;
    pw_call_key *key = key_at(count);
    *key = (pw_call_key){.a = a, .b = b, .frame = a, .kind = kind};
    if (kind == PW_CALL_C && b != PW_CALL_MET) key->frame = LONG2FIX(PW_FRAME_CALLED + (long)count);
    state.key_slots[at] = count + 1;
    /* The key is marked from here on. `decide` may start a garbage collection. */
    atomic_store_explicit(&state.key_count, count + 1, memory_order_release);
    if (pw_call_rules_now.decide) pw_call_rules_now.decide(key, context);
    return key;
}

void
pw_call_keys_each(void (*each)(const pw_call_key *key))
{
    uint32_t count = atomic_load_explicit(&state.key_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) each(key_at(i));
}

const pw_call_key *
pw_call_key_of_frame(VALUE frame)
{
    long number = FIX2LONG(frame) - PW_FRAME_CALLED;
    return number >= 0 &&
        number < (long)atomic_load_explicit(&state.key_count, memory_order_acquire) ? key_at((uint32_t)number) : NULL;
}

/* ---- nodes ---- */

static uint32_t
node_slot(const pw_call_tree *tree, const pw_call_node *parent, VALUE a, VALUE b)
{
    uint32_t at = (uint32_t)mix((uintptr_t)parent ^ mix(a ^ mix(b))) & (tree->slot_count - 1);
    for (pw_call_node *node; (node = tree->slots[at]) != NULL; at = (at + 1) & (tree->slot_count - 1)) {
        if (node->parent == parent && node->a == a && node->b == b) break;
    }
    return at;
}

static bool
grow_nodes(pw_call_tree *tree)
{
    uint32_t before = tree->slot_count, count = before ? before * 2 : 2 * FIRST_NODES;
    pw_call_node **old = tree->slots, **slots = calloc(count, sizeof *slots);
    if (!slots) return false;
    tree->slots = slots;
    tree->slot_count = count;
    for (uint32_t i = 0; i < before; i++) {
        if (old[i]) slots[node_slot(tree, old[i]->parent, old[i]->a, old[i]->b)] = old[i];
    }
    free(old);
    return true;
}

static pw_call_node *
new_node(pw_call_tree *tree)
{
    struct pw_call_block *block = tree->last;
    uint32_t room = block ? block->room : 0,
                    used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (used == room) {
        room = !room ? FIRST_NODES : room < MOST_NODES ? room * 2 : MOST_NODES;
        block = calloc(1, sizeof *block + room * sizeof *block->nodes);
        if (!block) return NULL;
        block->room = room;
        if (tree->last) __atomic_store_n(&tree->last->next, block, __ATOMIC_RELEASE);
        else __atomic_store_n(&tree->blocks, block, __ATOMIC_RELEASE);
        tree->last = block;
        used = 0;
    }
    return &block->nodes[used];
}

static void
remember_child(pw_call_node *node, VALUE a, VALUE b, pw_call_node *child)
{
    struct pw_call_children *c = node->children;
    if (!c && !(c = node->children = calloc(1, sizeof *c))) return;
    uint8_t at = c->next++ & 7;
    c->a[at] = a;
    c->b[at] = b;
    c->node[at] = child;
}

pw_call_node *
pw_call_child_slow(pw_call_tree *tree, pw_call_node *node, VALUE a, VALUE b, uint8_t kind, const void *context)
{
    const pw_call_rules *rules = &pw_call_rules_now;
    if (tree->count * 2 >= tree->slot_count && !grow_nodes(tree)) {
        state.lost++;
        return NULL;
    }
    pw_call_node *found = tree->slots[node_slot(tree, node, a, b)];
    if (found) {
        remember_child(node, a, b, found);
        return found;
    }
    const pw_call_key *key = key_of(a, b, kind, context);
    if (!key) {
        state.lost++;
        return NULL;
    }
    bool under = node->under || key->opens;
    if (key->hidden || (rules->only_under && !under) || (rules->max_depth && node->depth >= rules->max_depth)) {
        remember_child(node, a, b, node);
        return node;
    }
    pw_call_node *made = pw_call_nodes() < rules->max_nodes ? new_node(tree) : NULL;
    if (!made) {
        state.lost++;
        return NULL;
    }
    *made = (pw_call_node){.a = a, .b = b, .parent = node, .key = key, .depth = node->depth + 1, .under = under};
    __atomic_fetch_add(&state.node_count, 1, __ATOMIC_RELAXED);
    tree->count++;
    tree->slots[node_slot(tree, node, a, b)] = made; /* `decide` ran Ruby untraced: the slots are unchanged */
    atomic_fetch_add_explicit(&tree->last->used, 1, memory_order_release);
    remember_child(node, a, b, made);
    return made;
}

void
pw_call_nodes_each(pw_call_tree *tree, void (*each)(pw_call_tree *tree, pw_call_node *node, void *data), void *data)
{
    each(tree, &tree->root, data);
    struct pw_call_block *block = __atomic_load_n(&tree->blocks, __ATOMIC_ACQUIRE);
    for (; block; block = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE)) {
        uint32_t used = atomic_load_explicit(&block->used, memory_order_acquire);
        for (uint32_t i = 0; i < used; i++) each(tree, &block->nodes[i], data);
    }
}

/* ---- trees ---- */

static void
free_tree(pw_call_tree *tree)
{
    free(tree->root.children);
    for (struct pw_call_block *block = tree->blocks, *next; block; block = next) {
        next = block->next;
        for (uint32_t i = 0; i < block->used; i++) free(block->nodes[i].children);
        free(block);
    }
    free(tree->slots);
    free(tree);
}

/* Frees the trees that were taken out of the list. Apart from the drain, only threads with the GVL walk the list, so
 * no thread still reads these trees. needs GVL */
static void
free_buried(void)
{
    for (pw_call_tree *tree = atomic_exchange_explicit(&state.buried, NULL, memory_order_acquire),
         *next; tree; tree = next) {
        next = tree->next_buried;
        free_tree(tree);
    }
}

pw_call_tree *
pw_call_tree_new(uint32_t thread_id)
{
    free_buried();
    pw_call_tree *tree = calloc(1, sizeof *tree);
    if (!tree) return NULL;
    tree->thread_id = thread_id;
    tree->next = atomic_load_explicit(&state.trees, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&state.trees, &tree->next, tree, memory_order_release,
                                                  memory_order_relaxed)) {}
    return tree;
}

void
pw_call_trees_each(void (*each)(pw_call_tree *tree, void *data), void *data)
{
    for (pw_call_tree *tree = atomic_load_explicit(&state.trees,
        memory_order_acquire); tree; tree = __atomic_load_n(&tree->next, __ATOMIC_ACQUIRE)) {
        each(tree, data);
    }
}

/* Keeps the newest tree: threads insert new trees at the head of the list, before the newest tree. */
void
pw_call_trees_sweep(void)
{
    pw_call_tree *tree = atomic_load_explicit(&state.trees, memory_order_acquire);
    while (tree && tree->next) {
        pw_call_tree *next = tree->next;
        if (!next->settled) {
            tree = next;
            continue;
        }
        __atomic_store_n(&tree->next, next->next, __ATOMIC_RELEASE);
        __atomic_fetch_sub(&state.node_count, next->count, __ATOMIC_RELAXED);
        next->next_buried = atomic_load_explicit(&state.buried, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&state.buried, &next->next_buried, next, memory_order_release,
                                                      memory_order_relaxed)) {}
    }
}

uint32_t pw_call_nodes(void) { return __atomic_load_n(&state.node_count, __ATOMIC_RELAXED); }
uint64_t pw_call_lost(void) { return __atomic_load_n(&state.lost, __ATOMIC_RELAXED); }

void
pw_calls_free(bool frees)
{
    if (frees) {
        free_buried();
        for (pw_call_tree *tree = atomic_load(&state.trees), *next; tree; tree = next) {
            next = tree->next;
            free_tree(tree);
        }
        for (int i = 0; i < KEY_BLOCKS; i++) free(state.key_blocks[i]);
        free(state.key_slots);
    }
    memset(state.key_blocks, 0, sizeof state.key_blocks);
    atomic_store(&state.key_count, 0);
    state.key_slots = NULL;
    state.key_slot_count = state.node_count = 0;
    state.lost = 0;
    atomic_store(&state.trees, NULL);
    atomic_store(&state.buried, NULL);
}

/* The tracer's tables: callees (keys), call paths (nodes, one tree a thread), and the time of each node.
 *
 * Only threads with the GVL change the tables. The drain reads them at the same time. Nodes and keys lie in blocks
 * that never move, and are published when complete. Memory comes from the C library's malloc: Ruby's allocator would
 * count the memory and could start a collection. */
#ifndef PITWALL_CALLS_H
#define PITWALL_CALLS_H

#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The kind of a call. Each kind has its own probe cost. */
enum { PW_CALL_RUBY, PW_CALL_BLOCK, PW_CALL_C, PW_CALL_KINDS, PW_CALL_OTHER = PW_CALL_KINDS };

/* A callee. The words a and b are:
 *   Ruby method or block         its iseq, 0
 *   C function                   its class, its name; the call event precedes the frame, so no method entry exists yet
 *   C function found on a stack  its method entry, PW_CALL_MET
 *   Pitwall's own frame          a fixnum, 0 */
typedef struct {
    VALUE a, b;
    VALUE owner;   /* the method entry that the iseq ran for when first seen */
    VALUE frame;   /* the frame word that the recording uses for this callee */
    uint8_t kind;
    bool hidden;   /* filtered out: its time counts as its caller's own */
    bool opens;    /* calls below it are traced (--only-under) */
} pw_call_key;

#define PW_CALL_MET ((VALUE)1)

typedef struct pw_call_node pw_call_node;
struct pw_call_node {
    VALUE a, b;             /* words of its key */
    struct pw_call_children *children; /* the eight children seen last; NULL: none yet */
    pw_call_node *parent;
    uint64_t calls, hidden; /* hidden: filtered calls, whose probe cost is in this node's time */
    uint64_t wall, wait;    /* ticks */
    int64_t off;            /* ticks of `wall` off the CPU: CPU time is wall - off */
    uint64_t objects, bytes;
    const pw_call_key *key; /* NULL: the root */
    uint32_t depth;
    bool under;             /* its key or an ancestor's key opens */
    /* Used by the drain only. */
    uint32_t id;            /* the node's number in the recording; 0: none yet */
    uint64_t written, outside;
};

struct pw_call_children {
    VALUE a[8], b[8];
    pw_call_node *node[8]; /* the node itself: filtered out */
    uint8_t next;
};

/* The calls of one thread. */
typedef struct pw_call_tree {
    uint32_t thread_id;
    bool ended;          /* no more calls */
    bool settled;        /* ended, and all nodes are written: the tree can be freed */
    pw_call_node root;
    struct pw_call_block *blocks, *last;
    pw_call_node **slots; /* hash table of all nodes by parent and key */
    uint32_t slot_count, count;
    struct pw_call_tree *next, *next_buried;
    /* Used by tracer.c. `stacks`: the shadow stacks of the thread's fibers; `active`: the running one.
     * `cpu_read`: the thread's CPU clock at its last reading, ns; `cpu_tick`: the tick of that reading.
     * `ran`: while another thread runs, the ticks since that reading that were counted as CPU time. */
    struct pw_shadow *stacks, *active;
    int64_t cpu_read;
    uint64_t cpu_tick, ran;
} pw_call_tree;

/* Filters and limits. `decide` sets the frame, owner, hidden and opens of a new key. */
typedef struct {
    uint32_t max_nodes, max_depth; /* 0: any depth */
    bool only_under;
    void (*decide)(pw_call_key *key, const void *context);
} pw_call_rules;

extern pw_call_rules pw_call_rules_now;

pw_call_tree *pw_call_tree_new(uint32_t thread_id); /* NULL: no memory. needs GVL */
void pw_call_trees_each(void (*each)(pw_call_tree *tree, void *data), void *data);
uint32_t pw_call_nodes(void);    /* in all trees */
uint64_t pw_call_lost(void);     /* calls that were not counted because a table was full */
void pw_calls_free(bool frees);  /* false: forgets */

/* The child node of a call from `node`; `node` itself if the call is filtered out. NULL: not in the eight seen last. */
static inline pw_call_node *
pw_call_child(const pw_call_node *node, VALUE a, VALUE b)
{
    const struct pw_call_children *c = node->children;
    if (c) {
        for (int i = 0; i < 8; i++) {
            if (c->a[i] == a && c->b[i] == b) return c->node[i];
        }
    }
    return NULL;
}

/* Finds the child among all nodes, or creates it. NULL: the table is full. `context` is passed to `decide`. */
pw_call_node *pw_call_child_slow(pw_call_tree *tree, pw_call_node *node, VALUE a, VALUE b, uint8_t kind,
                                 const void *context);

/* Visits all keys, for marking. */
void pw_call_keys_each(void (*each)(const pw_call_key *key));
/* The key of a C function's frame word, a fixnum from PW_FRAME_CALLED on. NULL: no such key. */
const pw_call_key *pw_call_key_of_frame(VALUE frame);

/* Visits all nodes, parents first. */
void pw_call_nodes_each(pw_call_tree *tree, void (*each)(pw_call_tree *tree, pw_call_node *node, void *data),
                        void *data);

/* Removes settled trees from the list. The next pw_call_tree_new frees them. Called by the drain only. */
void pw_call_trees_sweep(void);

#endif

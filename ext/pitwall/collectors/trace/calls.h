/* The tracer's tables: who is called (keys), by which way (nodes of one tree a thread), and what that took.
 *
 * Changed only by threads that have the GVL. The drain reads beside them: nodes and keys lie in blocks that never
 * move, and become visible when they are whole. Memory is the process's own malloc: Ruby's would count, and
 * collect. */
#ifndef PITWALL_CALLS_H
#define PITWALL_CALLS_H

#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a call is by, for what its probe costs. */
enum { PW_CALL_RUBY, PW_CALL_BLOCK, PW_CALL_C, PW_CALL_KINDS, PW_CALL_OTHER = PW_CALL_KINDS };

/* One that can be called. A Ruby method or block: its iseq, 0. A C function: its class and name (it is announced before
 * its frame is there, so there is no method entry yet). A C function met on the stack: its method entry, PW_CALL_MET.
 * A frame of ours: a fixnum, 0. */
typedef struct {
    VALUE a, b;
    VALUE owner;   /* the method entry an iseq was seen to run for */
    VALUE frame;   /* what stands for it in the recording's frames */
    uint8_t kind;
    bool hidden;   /* counts as its caller's own */
    bool opens;    /* what is under it is traced (--only-under) */
} pw_call_key;

#define PW_CALL_MET ((VALUE)1)

typedef struct pw_call_node pw_call_node;
struct pw_call_node {
    VALUE a, b;             /* of its key */
    struct pw_call_children *children; /* the eight seen last; NULL while there are none */
    pw_call_node *parent;
    uint64_t calls, hidden; /* hidden: calls of what is filtered out, whose probes it paid */
    uint64_t wall, wait;    /* ticks */
    int64_t off;            /* ticks of its wall in which the thread did not compute: CPU time is wall - off */
    uint64_t objects, bytes;
    const pw_call_key *key; /* NULL: the root */
    uint32_t depth;
    bool under;             /* it or one above opens */
    /* The drain's. */
    uint32_t id;            /* in the recording; 0: not yet */
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
    bool settled;        /* and all are written: it can be freed */
    pw_call_node root;
    struct pw_call_block *blocks, *last;
    pw_call_node **slots; /* all nodes by parent and key, for those not among the eight */
    uint32_t slot_count, count;
    struct pw_call_tree *next, *next_buried;
    /* tracer.c's: its fibers' stacks, and which of them runs; its CPU clock when it was last read, in ns; the tick
     * of that moment; and while another thread runs, the ticks since that were taken for CPU time. */
    struct pw_shadow *stacks, *active;
    int64_t cpu_read;
    uint64_t cpu_tick, ran;
} pw_call_tree;

/* What is traced, and limits. `decide` fills a new key's frame, owner, hidden and opens. */
typedef struct {
    uint32_t max_nodes, max_depth; /* 0: any depth */
    bool only_under;
    void (*decide)(pw_call_key *key, const void *context);
} pw_call_rules;

extern pw_call_rules pw_call_rules_now;

pw_call_tree *pw_call_tree_new(uint32_t thread_id); /* NULL: no memory. needs GVL */
void pw_call_trees_each(void (*each)(pw_call_tree *tree, void *data), void *data);
uint32_t pw_call_nodes(void);    /* in all trees */
uint64_t pw_call_lost(void);     /* calls that had no room */
void pw_calls_free(bool frees);  /* false: forgets */

/* The node of a call from `node`: `node` itself where the call is filtered out. NULL: not among the eight seen last. */
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

/* The same among all, made if need be. NULL: there is no room. `context` is for `decide`. */
pw_call_node *pw_call_child_slow(pw_call_tree *tree, pw_call_node *node, VALUE a, VALUE b, uint8_t kind,
                                 const void *context);

/* For marking: all keys. */
void pw_call_keys_each(void (*each)(const pw_call_key *key));
/* Of a C function's frame, which is a fixnum from PW_FRAME_CALLED on. NULL: none. */
const pw_call_key *pw_call_key_of_frame(VALUE frame);

/* Node by node, parents first. */
void pw_call_nodes_each(pw_call_tree *tree, void (*each)(pw_call_tree *tree, pw_call_node *node, void *data),
                        void *data);

/* Takes settled trees out of the list; the next new tree frees them. Called by the drain alone. */
void pw_call_trees_sweep(void);

#endif

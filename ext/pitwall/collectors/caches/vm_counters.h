/* Counters that the VM keeps of its caches (RubyVM.stat). Four of them can be blamed on a line: their increase since
 * the last look belongs to the code that has run since. */
#ifndef PITWALL_VM_COUNTERS_H
#define PITWALL_VM_COUNTERS_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PW_VM_CONSTANTS, PW_VM_CLASSES, PW_VM_CVARS, PW_VM_SHAPES, PW_VM_COUNTERS };

typedef struct {
    const char *name;   /* as in RubyVM.stat; NULL: this Ruby does not have the counter */
    VALUE symbol;
    const void *address; /* NULL: not found */
    bool wide;           /* 8 bytes instead of 4 */
    _Atomic uint64_t seen; /* the value at the last look */
} pw_vm_counter;

extern PW_HIDDEN pw_vm_counter pw_vm_counters[PW_VM_COUNTERS];

/* Finds the counters and where they are in memory. `helper` is Pitwall::Collect::VMCounters. May raise. needs GVL */
void pw_vm_counters_find(VALUE helper);
/* Constant cache misses so far; 0: this Ruby does not count them. needs GVL */
uint64_t pw_vm_misses(void);
bool pw_vm_misses_known(void);
/* needs GVL */
uint64_t pw_vm_counter_read(const pw_vm_counter *counter);
/* The increase of each counter since the last call. Returns whether any counter has increased. needs GVL */
bool pw_vm_counters_claim(uint64_t increase[PW_VM_COUNTERS]);

static inline uint64_t
pw_vm_counter_at(const pw_vm_counter *counter)
{
    return counter->wide ? *(const volatile uint64_t *)counter->address : *(const volatile uint32_t *)counter->address;
}

/* Has a counter with a known address changed since the last claim? */
static inline bool
pw_vm_counters_changed(void)
{
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        const pw_vm_counter *c = &pw_vm_counters[i];
        if (c->address && pw_vm_counter_at(c) != atomic_load_explicit(&c->seen, memory_order_relaxed)) return true;
    }
    return false;
}

#endif

/* Changes that empty caches of the VM: one row each, with the stack that made the change. A row goes through the ring.
 * The drain turns rows into columns (CHNG of doc/record-format.md). */
#ifndef PITWALL_CHANGES_H
#define PITWALL_CHANGES_H

#include "collectors/caches/subjects.h"
#include "collectors/caches/vm_counters.h"
#include "output/ring.h"

/* The names are those of the recording. */
#define PW_CHANGE_KINDS(KIND) \
    KIND(PW_CONSTANT_SET, "constant_set") \
    KIND(PW_CONSTANT_REMOVED, "constant_removed") \
    KIND(PW_CONSTANT_AUTOLOAD, "constant_autoload") \
    KIND(PW_CONSTANT_VISIBILITY, "constant_visibility") \
    KIND(PW_CONSTANT_CHANGED, "constant_changed") \
    KIND(PW_CLASS_MADE, "class_made") \
    KIND(PW_MODULE_MADE, "module_made") \
    KIND(PW_SINGLETON_CLASS_MADE, "singleton_class_made") \
    KIND(PW_CLASS_COPIED, "class_copied") \
    KIND(PW_CLASS_CHANGED, "class_changed") \
    KIND(PW_MODULE_INCLUDED, "module_included") \
    KIND(PW_MODULE_PREPENDED, "module_prepended") \
    KIND(PW_OBJECT_EXTENDED, "object_extended") \
    KIND(PW_REFINEMENT_MADE, "refinement_made") \
    KIND(PW_REFINEMENT_USED, "refinement_used") \
    KIND(PW_METHOD_ADDED, "method_added") \
    KIND(PW_METHOD_ALIASED, "method_aliased") \
    KIND(PW_METHOD_REMOVED, "method_removed") \
    KIND(PW_METHOD_UNDEFINED, "method_undefined") \
    KIND(PW_METHOD_VISIBILITY, "method_visibility") \
    KIND(PW_OPERATOR_REDEFINED, "operator_redefined") \
    KIND(PW_CLASS_VARIABLE_SET, "class_variable_set") \
    KIND(PW_SHAPE_MADE, "shape_made") \
    KIND(PW_TRACING_ENABLED, "tracing_enabled")

enum {
#define PW_CHANGE_CONSTANT(constant, name) constant,
    PW_CHANGE_KINDS(PW_CHANGE_CONSTANT)
#undef PW_CHANGE_CONSTANT
    PW_CHANGES
};

typedef struct {
    pw_record_header header;
    void *thread;    /* pw_thread */
    int64_t at;      /* ns */
    uint32_t serial; /* serial number of the thread's stack */
    uint16_t change, subject_size;
    uint32_t begun, ended; /* pieces of work before the change */
    uint32_t label;        /* number of the thread's label set */
    uint64_t increase[PW_VM_COUNTERS];
    uint64_t misses; /* of constant caches, since the start */
    char subject[];
} pw_change_row;

/* If set, the next change of this native thread takes this frame as the top of its stack. pc: in place of the frame's
 * own; 0: the frame's own. */
typedef struct { const VALUE *ec, *cfp; VALUE pc; } pw_stack_top;
extern PW_HIDDEN __thread pw_stack_top pw_change_top __attribute__((tls_model("initial-exec")));

/* Notes a change at the calling thread's stack. `increase`: of the VM's counters, through this change. needs GVL */
void pw_change_note(int change, const pw_subject *subject, const uint64_t increase[PW_VM_COUNTERS]);

/* Counts a hook of the program whose changes are not seen. */
void pw_change_lost(void);

/* False: this thread's changes are not recorded now, because Pitwall itself works in it or nothing is recorded. */
bool pw_changes_wanted(void);

void pw_changes_init(void);
/* `home`: Pitwall's own folder, whose changes are not the program's. needs GVL */
void pw_changes_begin(const char *home);
void pw_changes_end(void);   /* nothing is noted after this; reads the counters' last values. needs GVL */
/* The values of further counters, at the start and (`last`) at the end. `list`: of Collect::VMCounters.all. Counters
 * that can be blamed on a line are left out. needs GVL */
void pw_changes_others(VALUE list, bool last);
void pw_changes_write_rows(void);
/* `rests`: how often comparing lines stopped. */
void pw_changes_write_sums(const char *watched, uint32_t rests);
void pw_changes_forget(bool frees);

#endif

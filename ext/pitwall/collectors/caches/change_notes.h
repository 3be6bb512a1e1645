/* What each watched method changes: notes about its calls. needs GVL */
#ifndef PITWALL_CHANGE_NOTES_H
#define PITWALL_CHANGE_NOTES_H

#include "collectors/caches/open_calls.h"
#include "collectors/caches/vm_counters.h"
#include "tools/hidden.h"

typedef struct {
    VALUE self, result;
    int argc;
    const VALUE *argv;
    pw_call_place place;                /* the method's frame */
    uint64_t increase[PW_VM_COUNTERS];  /* of the VM's counters, through this call */
    uint32_t noted;                     /* changes that hooks noted for this call */
    bool returned;                      /* false: it raised or threw */
    long before;                        /* what `before` found */
    VALUE kept;                         /* an object that `before` found */
} pw_watched_call;

typedef void (*pw_call_note_function)(pw_watched_call *call);

/* Called before and after the method's own function. `before` and `after` may be NULL. */
typedef struct {
    pw_call_note_function before, after;
    bool makes_class; /* the class exists when the call begins: claim the counters' increase since then, too */
    bool quiet;       /* methods that the call itself defines are part of the change */
} pw_call_notes;

extern const pw_call_notes
    pw_notes_const_set, pw_notes_const_remove, pw_notes_autoload, pw_notes_const_visibility, pw_notes_include,
    pw_notes_prepend, pw_notes_extend, pw_notes_refine, pw_notes_using, pw_notes_define, pw_notes_alias,
    pw_notes_visibility, pw_notes_singleton_visibility, pw_notes_remove_method, pw_notes_undef_method,
    pw_notes_define_singleton, pw_notes_singleton_class, pw_notes_class, pw_notes_module, pw_notes_copy,
    pw_notes_struct, pw_notes_variable, pw_notes_class_variable, pw_notes_trace_func;

void pw_change_notes_init(void);

/* A hook such as method_added was called. `argument`: the hook's. `place`: the hook's frame. */
void pw_hook_called(ID hook, VALUE receiver, VALUE argument, pw_call_place place);
/* Is it the name of such a hook? */
bool pw_is_hook(ID name);

/* The program has defined a method with the name of a hook. Set by own_hooks.c. */
extern PW_HIDDEN bool (*pw_is_own_hook)(pw_call_place place); /* does the frame run such a method? */
extern PW_HIDDEN void (*pw_hook_defined)(VALUE receiver, ID hook, bool singleton);

#endif

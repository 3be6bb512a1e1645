/* The modules of a recording. recording.c has the list of modules. Each module fills a pw_module with the functions
 * to call at each stage.
 *
 * A module with a name is a collector. A collector records its own kind of data in its own tables (allocations, exact
 * calls, system calls), beside samples or instead of samples. A collector is active only in recordings that ask for
 * it. Modules without a name are active in every recording.
 *
 * Lower files (drain.c, naming.c, gc.c, thread_events.c) call modules in higher folders through this list, without
 * including their headers. A function that a module does not need is NULL. Functions are called in the list's
 * order. */
#ifndef PITWALL_MODULES_H
#define PITWALL_MODULES_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdbool.h>

typedef struct {
    /* the collector's name, as in the settings and in the header's `collectors`; NULL: no collector, always active */
    const char *name;

    /* Called when the extension is loaded. needs GVL */
    void (*init)(VALUE native);

    /* Only modules without a name: called before the first sample can be taken. needs GVL */
    void (*prepare)(void);
    /* Only collectors. `settings` is a Hash of Strings. Returns NULL, or an error message: then the recording does not
     * begin. Must not raise. needs GVL */
    const char *(*start)(VALUE settings);
    /* Only modules without a name: called after the ticker and the collectors have started. needs GVL */
    void (*begin)(void);
    /* Only collectors: collects nothing after it returns. needs GVL */
    void (*stop)(void);
    /* Only modules without a name: called after the ticker, the collectors and the handlers have stopped. needs GVL */
    void (*end)(void);
    /* Frees the module's memory. In a forked child (`frees` false) only drops the pointers: a table may have been
     * growing at the fork. */
    void (*forget)(bool frees);
    /* Called in a forked child that runs Ruby, before `end` and `stop`. needs GVL */
    void (*in_child)(void);

    /* Writes chunks with the rows that changed since the last call. A reader uses the last row of an id. The drain
     * calls it while the program runs: counters may change while they are read, but tables must not move. `last`:
     * called after stop, by a thread that has the GVL. holds session lock */
    void (*write)(bool last);
    /* Like `write`, but called after the new strings and nodes of the tables were written: for rows that refer to
     * strings or nodes. holds session lock */
    void (*write_rows)(bool last);
    /* Like `write`, but called after the samples were written. holds session lock */
    void (*write_end)(bool last);
    /* Called by the drain between two pauses. holds session lock */
    void (*check)(void);

    /* Called when a piece of work (request, job, test) begins or ends. needs GVL */
    void (*work)(void);

    /* Called when garbage is marked, in any Ractor, before the session's lock is taken. */
    void (*marking)(void);
    /* Marks the objects that the module keeps alive. holds session lock */
    void (*mark)(void);
    /* Stops Ruby from reporting collections to the module. needs GVL */
    void (*leave_gc)(void);
    /* Called before a Ractor begins, on a Ruby that crashes if it reports objects or collections from then on (3.1).
     * needs GVL */
    void (*before_ractor)(void);

    /* Called before and after Ruby code that Pitwall itself runs in the calling thread. needs GVL */
    void (*own_begin)(void);
    void (*own_end)(void);
    /* Called when the calling thread begins to run Ruby, or gets the GVL back. */
    void (*here)(void);

    bool sees_endings; /* records execve and exit_group, so it must not be stopped before them */
    bool fills_ring;   /* writes far more records than sampling does */
} pw_module;

/* Sets the list of modules. Called at load, before any other function here. */
void pw_modules_use(const pw_module *const *list, int count);

/* Each calls the function of the same name of every module, or of every module active in the recording. */
void pw_modules_init(VALUE native);
void pw_modules_prepare(void);
/* `wanted`: {"name" => {"option" => "value"}}. Returns NULL, or the error message of the first collector that did not
 * start. Collectors earlier in the list have started then. */
const char *pw_modules_start(VALUE wanted);
void pw_modules_begin(void);
void pw_modules_stop(void);
void pw_modules_end(void);
void pw_modules_forget(bool frees);
void pw_modules_in_child(void);
void pw_modules_write(bool last);
void pw_modules_write_rows(bool last);
void pw_modules_write_end(bool last);
void pw_modules_check(void);
void pw_modules_work(void);
void pw_modules_marking(void);
void pw_modules_mark(void);
void pw_modules_leave_gc(void);
void pw_modules_before_ractor(void);
void pw_modules_here(void);

/* Does an active collector have `sees_endings`? Does a collector in `wanted` have `fills_ring`? */
bool pw_modules_see_endings(void);
bool pw_modules_fill_ring(VALUE wanted);

/* Above 0 while the calling thread does Pitwall's own work. Objects and calls of that work do not belong to the
 * program. */
extern PW_HIDDEN __thread int pw_own_work __attribute__((tls_model("initial-exec")));
void pw_own_begin(void);
void pw_own_end(void);

#endif

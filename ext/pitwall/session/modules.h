/* The parts that take part in a recording. recording.c has the list of them, and each part says here what is to be
 * called when.
 *
 * A part with a name is a collector: it records beside samples or instead of them, a noun of its own with tables of
 * its own (allocations, exact calls, system calls), and takes part only where it was asked for. The others always
 * take part.
 *
 * So files below (drain.c, naming.c, gc.c, thread_events.c) reach parts above them without knowing one. A function
 * that a part does not need is NULL. Functions are called in the list's order. */
#ifndef PITWALL_MODULES_H
#define PITWALL_MODULES_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdbool.h>

typedef struct {
    const char *name; /* a collector's, as in the settings and in the header's `collectors`; NULL: takes part always */

    /* When the extension is loaded. needs GVL */
    void (*init)(VALUE native);

    /* Of parts that always take part: before the first sample can be taken. needs GVL */
    void (*prepare)(void);
    /* Of collectors. `settings` is a Hash of Strings. NULL, or why not: then the recording does not begin. Raises
     * nothing. needs GVL */
    const char *(*start)(VALUE settings);
    /* Of parts that always take part: ticker and collectors run. needs GVL */
    void (*begin)(void);
    /* Of collectors: nothing is collected after it returns. needs GVL */
    void (*stop)(void);
    /* Of parts that always take part: ticker, collectors and handlers have stopped. needs GVL */
    void (*end)(void);
    /* Frees all. In a forked child (`frees` false) forgets all instead: a table may have been growing when the
     * process was copied. */
    void (*forget)(bool frees);
    /* In a forked child that runs Ruby, before `end` and `stop`. needs GVL */
    void (*in_child)(void);

    /* Writes chunks: what changed since the last call, so that the last row of an id counts. Called by the drain
     * beside the running program: counters may be read while they change, tables must not move. `last`: after stop,
     * with the GVL. holds session lock */
    void (*write)(bool last);
    /* As `write`, but after the tables' new strings and nodes were written: for rows that name them. holds session
     * lock */
    void (*write_rows)(bool last);
    /* As `write`, but after the samples. holds session lock */
    void (*write_end)(bool last);
    /* By the drain, between two pauses. holds session lock */
    void (*check)(void);

    /* Garbage is being marked, in any Ractor. Before the session's lock is taken. */
    void (*marking)(void);
    /* Marks what the part keeps alive. holds session lock */
    void (*mark)(void);
    /* Ruby reports collections to nobody of us any more. needs GVL */
    void (*leave_gc)(void);
    /* A Ractor is about to begin on a Ruby that crashes if it then reports objects or collections (3.1). needs GVL */
    void (*before_ractor)(void);

    /* Around Ruby code that Pitwall itself runs in the calling thread. needs GVL */
    void (*own_begin)(void);
    void (*own_end)(void);
    /* The calling thread begins to run Ruby, or got the GVL back. */
    void (*here)(void);

    bool sees_endings; /* it records execve and exit_group: not to be stopped before them */
    bool fills_ring;   /* it writes far more records than samples do */
} pw_module;

/* The list. At load, before any other call here. */
void pw_modules_use(const pw_module *const *list, int count);

/* Calls one function of all, or of those that take part in the recording. */
void pw_modules_init(VALUE native);
void pw_modules_prepare(void);
/* `wanted`: {"name" => {"option" => "value"}}. NULL, or why one did not start; those before it have started. */
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
void pw_modules_marking(void);
void pw_modules_mark(void);
void pw_modules_leave_gc(void);
void pw_modules_before_ractor(void);
void pw_modules_here(void);

/* Does a collector that takes part see endings? Is one asked for that fills the ring? */
bool pw_modules_see_endings(void);
bool pw_modules_fill_ring(VALUE wanted);

/* Above 0 while the calling thread does Pitwall's own work with Ruby's objects and methods: they are not the
 * program's. */
extern PW_HIDDEN __thread int pw_own_work __attribute__((tls_model("initial-exec")));
void pw_own_begin(void);
void pw_own_end(void);

#endif

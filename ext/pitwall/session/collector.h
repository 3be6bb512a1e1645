/* What records beside samples, or instead of them: a noun of its own with tables of its own (allocations, exact calls…).
 *
 * The session starts and stops it, has it marked, and tells it when to write. One that was not asked for does nothing. */
#ifndef PITWALL_COLLECTOR_H
#define PITWALL_COLLECTOR_H

#include <ruby/ruby.h>
#include <stdbool.h>

typedef struct {
    const char *name; /* as in the settings and in the header's `collectors` */
    /* `settings` is a Hash of Strings. NULL, or why not; then the recording does not begin. With the GVL; may raise nothing. */
    const char *(*start)(VALUE settings);
    /* Nothing is collected after it returns. With the GVL. */
    void (*stop)(void);
    /* Writes chunks: what changed since it last did, so that the last row of an id counts. Holds the session's lock. From
     * the drain, beside the running program: counters may be read while they change, tables must not move. `last`: after
     * stop, with the GVL. */
    void (*write)(bool last);
    /* While garbage is marked, and when it was compacted. Holds the session's lock. */
    void (*mark)(void);
    /* Frees all; in a forked child (`frees` false) forgets it: a table may have been growing when the process was copied. */
    void (*forget)(bool frees);
    /* Around Ruby code that Pitwall itself runs in the calling thread, which is not the program's. NULL: nothing to do. */
    void (*own_begin)(void);
    void (*own_end)(void);
    /* The calling thread begins to run Ruby, or goes on doing so after it had let go of the GVL. NULL: nothing to do. */
    void (*here)(void);
    /* As `write`, but once the tables' new strings and nodes are written, for rows that name them. NULL: has none. */
    void (*write_rows)(void);
    /* It tells of execve and exit_group: it must not be stopped before them. */
    bool sees_endings;
} pw_collector;

enum { PW_COLLECTORS = 3 };
extern const pw_collector *const pw_collectors[];
extern const pw_collector pw_allocations;

/* Above 0 while the calling thread does Pitwall's own work with Ruby's objects and methods: they are not the program's. */
extern __thread int pw_own_work __attribute__((tls_model("initial-exec")));
void pw_own_begin(void);
void pw_own_end(void);

void Init_pitwall_allocations(VALUE native);
void pw_allocations_before_ractor(void); /* where Ruby cannot tell of objects once there are Ractors */

/* Of those that were asked for, in sampler.c. */
void pw_collectors_write(bool last);
void pw_collectors_write_rows(void);
void pw_collectors_here(void);
void pw_collectors_mark(void);

#endif

/* Names for frames and threads, given by a postponed job or at stop. A frame is named once. */
#ifndef PITWALL_NAMING_H
#define PITWALL_NAMING_H

#include <ruby/ruby.h>
#include <stdbool.h>

void pw_naming_init(VALUE native);
/* By the drain: wants a naming job, and triggers one where the drain's thread may (see pw_may_trigger). */
void pw_naming_trigger(void);
/* Does the drain want one that another thread must trigger? */
bool pw_naming_wanted(void);
/* At a tick: triggers the job that the drain could not. async-signal-safe */
void pw_naming_trigger_if_wanted(void);
/* At stop: names everything that has no name yet. needs GVL */
void pw_naming_finish(void);
/* Names one thread. Lets other threads run. needs GVL */
void pw_name_thread(VALUE thread);

void pw_naming_write(void); /* FRAM: what was named since. holds session lock */
void pw_naming_free(bool frees);

#endif

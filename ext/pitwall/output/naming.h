/* Names of frames and threads. A postponed job finds the names, or stop does. A frame is named once. */
#ifndef PITWALL_NAMING_H
#define PITWALL_NAMING_H

#include <ruby/ruby.h>
#include <stdbool.h>

void pw_naming_init(VALUE native);
/* Called by the drain: asks for a naming job, and triggers the job where the drain may (see pw_may_trigger). */
void pw_naming_trigger(void);
/* Did the drain ask for a job that another thread must trigger? */
bool pw_naming_wanted(void);
/* At a tick: triggers the job if the drain asked and could not trigger it. async-signal-safe */
void pw_naming_trigger_if_wanted(void);
/* At stop: names all frames and threads. needs GVL */
void pw_naming_finish(void);
/* Names one thread. Lets other threads run. needs GVL */
void pw_name_thread(VALUE thread);

void pw_naming_write(void); /* FRAM: frames named since the last write. holds session lock */
void pw_naming_free(bool frees);
/* Adds a row of FRAM. `name`, `path`: numbers of strings. holds session lock */
void pw_naming_add(uint32_t id, uint8_t kind, uint32_t name, uint32_t path, uint32_t line);

#endif

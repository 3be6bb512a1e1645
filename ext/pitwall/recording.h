/* Beginning and ending a recording. */
#ifndef PITWALL_RECORDING_H
#define PITWALL_RECORDING_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* Before exec or exit!: ends the recording, so that everything in it has a name. True: it ended, and is to begin
 * again should the process live on. Where a collector sees the ending itself, the recording goes on: all so far is
 * named and written, and at exit! the end as well. needs GVL */
bool pw_complete(const char *reason);

void pw_recording_init(VALUE native);

#endif

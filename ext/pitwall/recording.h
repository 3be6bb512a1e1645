/* Beginning and ending a recording. */
#ifndef PITWALL_RECORDING_H
#define PITWALL_RECORDING_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* Completes the recording before exec or exit!, so that every id in the file has a name.
 * True: the recording was stopped; the caller restarts it if the process survives. False: it was not stopped.
 * If a collector records the ending call itself, the recording continues. All data so far is then named and written;
 * for exit!, the END of the recording is written too. needs GVL */
bool pw_complete(const char *reason);

void pw_recording_init(VALUE native);

#endif

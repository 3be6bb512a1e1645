/* Ticks by signal: a timer for each thread. */
#ifndef PITWALL_SIGNAL_TICKER_H
#define PITWALL_SIGNAL_TICKER_H

#include "session/ticker.h"
#include <ruby/ruby.h>

extern const pw_ticker pw_signal_ticker;

bool pw_signal_taken(int signo); /* by a handler of the program */

void pw_signal_ticker_init(VALUE native);

#endif

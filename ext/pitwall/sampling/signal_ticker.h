/* The signal ticker: a timer for each thread, which sends a signal. */
#ifndef PITWALL_SIGNAL_TICKER_H
#define PITWALL_SIGNAL_TICKER_H

#include "session/ticker.h"
#include <ruby/ruby.h>

extern const pw_ticker pw_signal_ticker;

bool pw_signal_taken(int signo); /* does the program have a handler for it? */

void pw_signal_ticker_init(VALUE native);

#endif

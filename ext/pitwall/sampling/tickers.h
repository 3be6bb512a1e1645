/* The list of tickers. */
#ifndef PITWALL_TICKERS_H
#define PITWALL_TICKERS_H

#include "session/ticker.h"
#include <ruby/ruby.h>

/* Finds the ticker of a mode, e.g. "signal". NULL: there is no such mode. needs GVL */
const pw_ticker *pw_ticker_named(VALUE mode);

#endif

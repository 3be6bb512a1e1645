/* The list of tickers. */
#ifndef PITWALL_TICKERS_H
#define PITWALL_TICKERS_H

#include "session/ticker.h"
#include <ruby/ruby.h>

/* The ticker of a mode, a String; NULL: there is no such mode. needs GVL */
const pw_ticker *pw_ticker_named(VALUE mode);

#endif

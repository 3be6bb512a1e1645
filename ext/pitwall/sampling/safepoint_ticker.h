/* The safepoint ticker: samples at Ruby's safepoints. */
#ifndef PITWALL_SAFEPOINT_TICKER_H
#define PITWALL_SAFEPOINT_TICKER_H

#include "session/ticker.h"

extern const pw_ticker pw_safepoint_ticker;

#endif

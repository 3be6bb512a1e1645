/* The outside ticker: a helper thread reads the stacks of other threads while those threads run. */
#ifndef PITWALL_OUTSIDE_TICKER_H
#define PITWALL_OUTSIDE_TICKER_H

#include "session/ticker.h"

extern const pw_ticker pw_outside_ticker;

/* Ends the helper's rest. Called by a thread that has got the GVL. async-signal-safe */
void pw_reader_awake(void);

#endif

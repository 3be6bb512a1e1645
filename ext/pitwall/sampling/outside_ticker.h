/* Ticks of a helper thread, which reads the stacks of the others while they run on. */
#ifndef PITWALL_OUTSIDE_TICKER_H
#define PITWALL_OUTSIDE_TICKER_H

#include "session/ticker.h"

extern const pw_ticker pw_outside_ticker;

/* By a thread that has got the GVL: the helper may have had nothing to do until then. async-signal-safe */
void pw_reader_awake(void);

#endif

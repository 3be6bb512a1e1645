#include "sampling/tickers.h"
#include "sampling/outside_ticker.h"
#include "sampling/safepoint_ticker.h"
#include "sampling/signal_ticker.h"

static int start(void) { return 0; }
static void stop(void) {}
static void nothing(struct pw_thread *t) { (void)t; }

/* For recordings without samples. Threads still get names, and collectors record the threads' work. */
static const pw_ticker no_ticker = {
    .name = "none", .start = start, .stop = stop, .stop_in_child = stop, .thread_begin = nothing, .thread_end = nothing,
    .thread_resumed = nothing, .thread_left = nothing, .check = stop};

const pw_ticker *
pw_ticker_named(VALUE mode)
{
    static const pw_ticker *const tickers[] = {&pw_signal_ticker, &pw_safepoint_ticker, &pw_outside_ticker, &no_ticker};
    for (size_t i = 0; i < sizeof tickers / sizeof *tickers; i++) {
        if (rb_str_equal(mode, rb_str_new_cstr(tickers[i]->name)) == Qtrue) return tickers[i];
    }
    return NULL;
}

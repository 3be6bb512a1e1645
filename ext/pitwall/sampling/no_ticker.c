/* For recordings without samples: threads are known by name, and other collectors see what they do. */
#include "sampler.h"

static int start(void) { return 0; }
static void stop(void) {}
static void nothing(struct pw_thread *t) { (void)t; }

const pw_ticker pw_no_ticker = {"none", start, stop, stop, nothing, nothing, nothing, nothing, stop, NULL, NULL};

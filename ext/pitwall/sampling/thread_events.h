/* Events of threads: begin, end, GVL released, GVL got. */
#ifndef PITWALL_THREAD_EVENTS_H
#define PITWALL_THREAD_EVENTS_H

#include "session/modules.h"

extern const pw_module pw_thread_events;

#endif

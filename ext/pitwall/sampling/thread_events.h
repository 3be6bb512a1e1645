/* Threads coming, going, releasing and getting the GVL. */
#ifndef PITWALL_THREAD_EVENTS_H
#define PITWALL_THREAD_EVENTS_H

#include "session/modules.h"

extern const pw_module pw_thread_events;

#endif

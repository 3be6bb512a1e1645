/* The collector of objects: where each was allocated, how old it grew, how large it was. */
#ifndef PITWALL_ALLOCATIONS_H
#define PITWALL_ALLOCATIONS_H

#include "session/modules.h"

extern const pw_module pw_allocations;

#endif

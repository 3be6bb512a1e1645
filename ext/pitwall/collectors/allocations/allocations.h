/* The allocations collector: for each object its site, its age at the end, and its size. */
#ifndef PITWALL_ALLOCATIONS_H
#define PITWALL_ALLOCATIONS_H

#include "session/modules.h"

extern const pw_module pw_allocations;

#endif

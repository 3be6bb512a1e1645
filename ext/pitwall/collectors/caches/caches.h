/* The collector of changes that empty caches of the VM. */
#ifndef PITWALL_CACHES_H
#define PITWALL_CACHES_H

#include "session/modules.h"

extern const pw_module pw_caches;

#endif

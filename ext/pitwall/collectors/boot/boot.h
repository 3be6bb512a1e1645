/* What the program loads: one row for each file, with its time, objects and memory (LOAD of doc/record-format.md). */
#ifndef PITWALL_BOOT_H
#define PITWALL_BOOT_H

#include "session/modules.h"

extern const pw_module pw_boot;

#endif

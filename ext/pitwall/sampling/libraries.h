/* Detects that the program has loaded a library that Pitwall knows: a test framework or a database library. */
#ifndef PITWALL_LIBRARIES_H
#define PITWALL_LIBRARIES_H

#include "session/modules.h"

extern const pw_module pw_libraries;

#endif

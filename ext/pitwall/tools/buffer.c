#include "tools/buffer.h"

_Atomic bool pw_memory_refused;

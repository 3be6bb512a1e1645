#include "vm/known_frames.h"

_Atomic VALUE pw_known_slots[PW_KNOWN_SLOTS];
uint32_t pw_known_generation;

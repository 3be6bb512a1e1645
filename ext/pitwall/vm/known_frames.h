/* The captured words that are proven frames. naming.c has named these frames, and they have been marked since then.
 * So they are alive and in place.
 *
 * The set is lossy and made for signal handlers. A word in the set is a proven frame. A word that is not in the set
 * may be a proven frame, too. */
#ifndef PITWALL_KNOWN_FRAMES_H
#define PITWALL_KNOWN_FRAMES_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PW_KNOWN_SLOTS = 1 << 12 };
extern PW_HIDDEN _Atomic VALUE pw_known_slots[PW_KNOWN_SLOTS];

static inline _Atomic VALUE *
pw_known_slot(VALUE frame)
{
    return &pw_known_slots[(uint64_t)frame * 0x9e3779b97f4a7c15u >> 52];
}

static inline bool
pw_known(VALUE frame)
{
    return atomic_load_explicit(pw_known_slot(frame), memory_order_acquire) == frame;
}

static inline void
pw_known_add(VALUE frame)
{
    atomic_store_explicit(pw_known_slot(frame), frame, memory_order_release);
}

/* Counts the clearings of the set. Code that clears the set, and code that relies on the count, holds the reader
 * lock. So they exclude each other. */
extern PW_HIDDEN uint32_t pw_known_generation;

static inline void
pw_known_clear(void)
{
    pw_known_generation++;
    for (int i = 0; i < PW_KNOWN_SLOTS; i++) atomic_store_explicit(&pw_known_slots[i], 0, memory_order_relaxed);
}

#endif

/* Which captured words are proven frames: named by naming.c, and marked since, so that they are alive and in place.
 *
 * A lossy set for handlers: a word found is right, one not found may still be known. */
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

/* Counts the clearings. They and whoever trusts it exclude each other by holding the reader lock. */
extern PW_HIDDEN uint32_t pw_known_generation;

static inline void
pw_known_clear(void)
{
    pw_known_generation++;
    for (int i = 0; i < PW_KNOWN_SLOTS; i++) atomic_store_explicit(&pw_known_slots[i], 0, memory_order_relaxed);
}

#endif

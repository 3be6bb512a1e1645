/* Repeated requires: which line asked for a file that had been loaded before. Each is a row in the ring. The drain
 * turns rows into columns (AGIN of doc/record-format.md). */
#ifndef PITWALL_REPEATS_H
#define PITWALL_REPEATS_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

/* The caller's line asked for `name` within the load `around` (its id; 0: outside of all loads). Equal ones have one
 * row, or a few. needs GVL */
void pw_repeats_add(uint64_t around, int kind, VALUE name);

void pw_repeats_init(void);
void pw_repeats_start(void); /* needs GVL */
void pw_repeats_write_rows(void);
void pw_repeats_forget(bool frees);

#endif

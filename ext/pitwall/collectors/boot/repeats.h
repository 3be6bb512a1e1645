/* Repeated requires: which line asked for a file that had been loaded before. Each is a row in the ring; equal
 * ones have one, or a few. The drain turns rows into columns (AGIN of doc/record-format.md). */
#ifndef PITWALL_REPEATS_H
#define PITWALL_REPEATS_H

#include <stdbool.h>

void pw_repeats_init(void);
void pw_repeats_start(void); /* needs GVL */
void pw_repeats_write_rows(void);
void pw_repeats_forget(bool frees);

#endif

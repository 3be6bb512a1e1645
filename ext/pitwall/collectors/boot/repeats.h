/* Repeated requires: which line asked for a file that had been loaded before. Equal requires usually share one row in
 * the ring. The drain turns rows into columns (AGIN of doc/record-format.md). */
#ifndef PITWALL_REPEATS_H
#define PITWALL_REPEATS_H

#include <stdbool.h>

void pw_repeats_init(void);
void pw_repeats_start(void); /* needs GVL */
void pw_repeats_write_rows(void);
void pw_repeats_forget(bool frees);

#endif

/* Rows of samples: the time that a thread spent at a node, and its state. SAMP and OPEN of doc/record-format.md.
 * All functions but init and free: holds session lock. */
#ifndef PITWALL_ROWS_H
#define PITWALL_ROWS_H

#include "output/intern.h"
#include "output/records.h"

bool pw_rows_init(void); /* false: no memory */
void pw_rows_free(void);
/* Adds the column of labels to all rows written from now on. */
void pw_rows_with_labels(void);

/* Enters a record's stack into the tables. Afterwards pw_node_of returns the stack's node. */
void pw_take_stack(pw_thread *t, const pw_sample *s);
uint32_t pw_node_of(const pw_thread *t);
/* Enters a thread's whole path into emptied tables. `before`: the old tables, for the owners. */
void pw_rows_reintern(pw_thread *t, const pw_intern *before);

/* Adds a row: the thread spent the time since its last row at this node. True: the chunk is full, and must be
 * written. */
bool pw_add_row(pw_thread *t, uint32_t node, uint8_t state, uint32_t captures, int64_t wall, int64_t cpu);

void pw_rows_write(void);
/* Writes the time of each thread since its last row. The next flush's OPEN replaces these rows. */
void pw_rows_write_open(void);

#endif

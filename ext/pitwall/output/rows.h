/* Rows of samples: how long a thread spent at a node, and in which state. SAMP and OPEN of doc/record-format.md.
 * All functions but init and free: holds session lock. */
#ifndef PITWALL_ROWS_H
#define PITWALL_ROWS_H

#include "output/intern.h"
#include "output/records.h"

bool pw_rows_init(void); /* false: no memory */
void pw_rows_free(void);
/* From here on rows have a column of labels. */
void pw_rows_with_labels(void);

/* Enters a record's stack into the tables; then pw_node_of is its node. */
void pw_take_stack(pw_thread *t, const pw_sample *s);
uint32_t pw_node_of(const pw_thread *t);
/* Enters a thread's whole path anew into emptied tables. */
void pw_rows_reintern(pw_thread *t, const pw_intern *before);

/* A thread spent the time since its last row at this node. True: as many rows as a chunk holds, time to write them. */
bool pw_add_row(pw_thread *t, uint32_t node, uint8_t state, uint32_t captures, int64_t wall, int64_t cpu);

void pw_rows_write(void);
/* What threads have spent since their last row. The next flush supersedes it. */
void pw_rows_write_open(void);

#endif

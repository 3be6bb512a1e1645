/* Counters of the VM's caches over each piece of work (a request, a job, a test). The counters are the process's, so
 * they say nothing of work that ran beside other work. */
#ifndef PITWALL_WORK_COUNTERS_H
#define PITWALL_WORK_COUNTERS_H

#include "output/records.h"
#include <ruby/ruby.h>

void pw_work_counters_init(VALUE native);
/* A recording begins. needs GVL */
void pw_work_counters_reset(void);
/* A piece of work ends in the fiber in which it began. `work`: of Native.count_work. needs GVL */
pw_work_increase pw_work_counters_end(VALUE work);

/* Adds the work to the sums of its label set. holds session lock */
void pw_work_counters_add(uint32_t label, const pw_work_increase *increase);
/* A mark that was kept: row of CMRK. `end`: ns since the recording's start. holds session lock */
void pw_work_counters_mark(uint32_t thread, int64_t end, const pw_work_increase *increase);
/* Writes CWRK and CMRK chunks of doc/record-format.md. holds session lock */
void pw_work_counters_write(void);
void pw_work_counters_forget(bool frees);

/* Returns a table by label with room for this label, with new rows zeroed. If there is no memory, returns the table
 * unchanged. */
void *pw_label_table(void *table, uint32_t *room, size_t size, uint32_t label);

#endif

/* Counts the pieces of work of this recording: requests, jobs and tests. */
#ifndef PITWALL_WORKS_H
#define PITWALL_WORKS_H

#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct { _Atomic uint32_t begun, ended; } pw_work_counts;
extern PW_HIDDEN pw_work_counts pw_works;

void pw_works_init(VALUE native);
void pw_works_reset(void);
/* needs GVL */
void pw_work_ended(void);

#endif

/* Uses: which files have a method or block that runs after the file has been loaded. Each loaded file that defines
 * methods is a row, and its first use is another row (USED of doc/record-format.md).
 *
 * A TracePoint watches the code of one file, and is disabled at the file's first use. So code that runs has no hook
 * left. Coverage would slow each call until the program ends, and a compile cache does not serve a program that
 * runs Coverage. */
#ifndef PITWALL_USES_H
#define PITWALL_USES_H

#include <ruby/ruby.h>
#include <stdbool.h>

void pw_uses_init(void);
/* May raise. needs GVL */
void pw_uses_start(VALUE settings);
void pw_uses_stop(void); /* needs GVL */
void pw_uses_in_child(void); /* needs GVL */
/* Uses are recorded in this recording. */
bool pw_uses_recorded(void);
void pw_uses_write_rows(void);
void pw_uses_forget(bool frees);

#endif

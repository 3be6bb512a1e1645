/* Counts strings of equal content by a keyed digest. The content cannot be recovered, not even from the recording. */
#ifndef PITWALL_DUPLICATES_H
#define PITWALL_DUPLICATES_H

#include <ruby/ruby.h>
#include <stdbool.h>

#define PW_MAX_DUPLICATES (1u << 17) /* pairs of content and site; 4 MB */

bool pw_duplicates_start(void); /* false: no memory, or no random key */
/* Adds a string that was freed, or that lives at the end. `swept`: objects it refers to may have been freed. */
void pw_duplicates_add(VALUE string, uint32_t site, size_t bytes, bool swept);
void pw_duplicates_write(void); /* writes the DUPS chunk, once. holds session lock */
void pw_duplicates_free(void);

#endif

/* Strings of equal content, told by a keyed digest: which content it was cannot be found out, not even with the
 * recording. */
#ifndef PITWALL_DUPLICATES_H
#define PITWALL_DUPLICATES_H

#include <ruby/ruby.h>
#include <stdbool.h>

#define PW_MAX_DUPLICATES (1u << 17) /* contents by site; 4 MB */

bool pw_duplicates_start(void); /* false: no memory, or no random key */
/* A string has ended (or lives at the end). `swept`: what it refers to may be gone. */
void pw_duplicates_add(VALUE string, uint32_t site, size_t bytes, bool swept);
void pw_duplicates_write(void); /* DUPS, once. holds session lock */
void pw_duplicates_free(void);

#endif

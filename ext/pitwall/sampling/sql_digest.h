/* A number for what an SQL statement is like: the same for statements that differ only in literals, in how many values a list
 * has, in comments, in white space and in the case of words. Nothing of the text can be read back from it. */
#ifndef PITWALL_SQL_DIGEST_H
#define PITWALL_SQL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Of the first 64 KiB. 48 bits, never 0. Allocates nothing. */
uint64_t pw_sql_digest(const char *sql, size_t length);

#endif

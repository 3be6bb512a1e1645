/* A number for the shape of an SQL statement. Statements have the same number if they differ only in literals, in the
 * number of values in a list, in comments, in white space and in the case of words. The text cannot be read back from
 * the number. */
#ifndef PITWALL_SQL_DIGEST_H
#define PITWALL_SQL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* The digest of the first 64 KiB: 48 bits, never 0. Allocates nothing. */
uint64_t pw_sql_digest(const char *sql, size_t length);

#endif

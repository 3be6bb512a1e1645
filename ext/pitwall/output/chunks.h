/* Chunks of the tables and of the session's counters: STRS, OBJS, NODE, STAT and TAIL of doc/record-format.md.
 * holds session lock */
#ifndef PITWALL_CHUNKS_H
#define PITWALL_CHUNKS_H

#include "tools/buffer.h"

/* Writes a chunk and frees the payload. */
void pw_chunks_put(const char *type, pw_buffer *payload);

void pw_chunks_write_strings(void);
void pw_chunks_write_nodes(void);
/* Before pw_chunks_write_strings. */
void pw_chunks_write_objects(void);
/* `drain_cpu`: CPU ns of the drain's thread so far. */
void pw_chunks_write_stat(int64_t drain_cpu);
void pw_chunks_write_tail(const char *reason);

#endif

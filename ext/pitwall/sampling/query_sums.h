/* Sums of queries by the labels of the work that made them: QSUM of doc/record-format.md. holds session lock */
#ifndef PITWALL_QUERY_SUMS_H
#define PITWALL_QUERY_SUMS_H

#include "output/records.h"

void pw_query_sums_add(uint32_t label, const pw_query_part *parts, uint32_t count, bool of_work);
void pw_query_sums_write(void); /* writes new rows */
void pw_query_sums_forget(bool frees);

static inline uint64_t
pw_query_hash(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6))) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

#endif

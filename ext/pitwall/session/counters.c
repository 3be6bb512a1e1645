#include "session/counters.h"

const pw_counter_info pw_counter_infos[PW_COUNTERS] = {
#define INFO(constant, name, returned) [constant] = {name, returned},
    PW_COUNTER_TABLE(INFO)
#undef INFO
};

_Atomic int64_t pw_counts[PW_COUNTERS];

void
pw_counters_reset(void)
{
    for (int i = 0; i < PW_COUNTERS; i++) atomic_store(&pw_counts[i], 0);
}

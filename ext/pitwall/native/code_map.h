/* Which object has which addresses, for handlers: sorted, never changed once it is published. */
#ifndef PITWALL_CODE_MAP_H
#define PITWALL_CODE_MAP_H

#include "native/cfi_table.h"

typedef struct {
    uintptr_t from, to;
    const pw_cfi_table *table; /* NULL: no rules */
    uint16_t object;           /* pw_object's number + 1 */
    bool stays;                /* never unloaded: its instructions can be read at any time */
} pw_code;

typedef struct {
    uint32_t count;
    size_t mapped;       /* bytes */
    uint64_t generation; /* no two maps of a process have the same; from 1 on */
    pw_code code[];
} pw_code_map;

/* NULL: no object has the address. async-signal-safe */
static inline const pw_code *
pw_code_at(const pw_code_map *map, uintptr_t address)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->code[middle].to <= address) low = middle + 1;
        else high = middle;
    }
    return low < map->count && map->code[low].from <= address ? &map->code[low] : NULL;
}

#endif

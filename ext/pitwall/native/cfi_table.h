/* How to unwind the functions of one object: the rules of its .eh_frame (call frame information of DWARF), for each
 * range of instructions. Made once by cfi_parse.c, never changed, in memory of its own. */
#ifndef PITWALL_CFI_TABLE_H
#define PITWALL_CFI_TABLE_H

#include "native/registers.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most rules are plain: the CFA is a register plus an offset, and registers were saved at offsets from the CFA. */
enum {
    PW_CFI_NONE,  /* nothing is known of these instructions */
    PW_CFI_PLAIN,
    PW_CFI_LAST,  /* there is no caller: the return address is undefined */
    PW_CFI_RARE   /* everything else; cfa_offset is a number in `rare` */
};

typedef struct {
    int32_t cfa_offset;
    uint8_t kind, cfa_register;
    int16_t saved[PW_SAVED_REGISTERS]; /* in words from the CFA, as pw_saved_registers lists them; 0: as it was */
} pw_cfi_rule;

enum { PW_CFI_SAME, PW_CFI_UNDEFINED, PW_CFI_AT_OFFSET, PW_CFI_OFFSET, PW_CFI_REGISTER, PW_CFI_AT_EXPRESSION,
       PW_CFI_EXPRESSION };

/* A register's value in the caller: as it is, unknown, memory at CFA + offset, CFA + offset, another register, memory
 * at an expression's result, an expression's result. */
typedef struct {
    uint8_t how[PW_REGISTERS];
    int32_t value[PW_REGISTERS]; /* an offset, a register, or a place in `expressions` */
    uint8_t cfa_register;
    bool cfa_is_expression;
    bool signal;                 /* the caller was interrupted: its pc is no return address */
    int32_t cfa_value;
} pw_cfi_rare;

typedef struct {
    uintptr_t base;              /* starts and rows count from here */
    uint32_t size;               /* of the code, in bytes */
    uint32_t functions, rows, rules, rares, expressions_size;
    uint32_t *starts, *lengths;  /* by function, sorted */
    uint32_t *first_rows;        /* functions + 1 */
    uint32_t *row_starts;
    uint16_t *row_rules;
    uint32_t *buckets;           /* by PW_CFI_BUCKET bytes of code: the last function that starts at or before it */
    pw_cfi_rule *rule;           /* 0: PW_CFI_NONE */
    pw_cfi_rare *rare;
    uint8_t *expressions;        /* each: its length in 2 bytes, then the operations */
    size_t mapped;               /* bytes of this whole block */
} pw_cfi_table;

enum { PW_CFI_BUCKET_BITS = 8 };

/* Index of the function that has the address, or UINT32_MAX. async-signal-safe */
static inline uint32_t
pw_cfi_function(const pw_cfi_table *t, uintptr_t address)
{
    uintptr_t at = address - t->base;
    if (at >= t->size) return UINT32_MAX;
    uint32_t i = t->buckets[at >> PW_CFI_BUCKET_BITS];
    while (i + 1 < t->functions && t->starts[i + 1] <= at) i++;
    return at - t->starts[i] < t->lengths[i] ? i : UINT32_MAX;
}

/* async-signal-safe */
static inline const pw_cfi_rule *
pw_cfi_rule_at(const pw_cfi_table *t, uint32_t function, uintptr_t address)
{
    uint32_t at = (uint32_t)(address - t->base), low = t->first_rows[function], high = t->first_rows[function + 1];
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (t->row_starts[middle] <= at) low = middle;
        else high = middle;
    }
    return high == low ? &t->rule[0] : &t->rule[t->row_rules[low]];
}

void pw_cfi_free(pw_cfi_table *table);

#endif

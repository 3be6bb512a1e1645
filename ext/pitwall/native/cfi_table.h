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

/* What one frame needs lies together: a handler's tables are seldom in the processor's cache. */
typedef struct { uint32_t start, length, first_row; } pw_cfi_function;
typedef struct { uint32_t start; uint16_t rule; } pw_cfi_row;

typedef struct {
    uintptr_t base;              /* starts count from here */
    uint32_t size;               /* of the code, in bytes */
    uint32_t functions, rows, rules, rares, expressions_size;
    pw_cfi_function *function;   /* sorted; one more at the end has first_row alone */
    pw_cfi_row *row;
    uint32_t *buckets;           /* by 1 << PW_CFI_BUCKET_BITS bytes of code: the last function that starts before it */
    pw_cfi_rule *rule;           /* the first: PW_CFI_NONE */
    pw_cfi_rare *rare;
    uint8_t *expressions;        /* each: its length in 2 bytes, then the operations */
    size_t mapped;               /* bytes of this whole block */
} pw_cfi_table;

enum { PW_CFI_BUCKET_BITS = 8 };

/* NULL: no function has the address. async-signal-safe */
static inline const pw_cfi_function *
pw_cfi_function_at(const pw_cfi_table *t, uintptr_t address)
{
    uintptr_t at = address - t->base;
    if (at >= t->size) return NULL;
    uint32_t i = t->buckets[at >> PW_CFI_BUCKET_BITS];
    while (i + 1 < t->functions && t->function[i + 1].start <= at) i++;
    return at - t->function[i].start < t->function[i].length ? &t->function[i] : NULL;
}

/* async-signal-safe */
static inline const pw_cfi_rule *
pw_cfi_rule_at(const pw_cfi_table *t, const pw_cfi_function *function, uintptr_t address)
{
    uint32_t at = (uint32_t)(address - t->base), low = function->first_row, high = function[1].first_row;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (t->row[middle].start <= at) low = middle;
        else high = middle;
    }
    return high == low ? &t->rule[0] : &t->rule[t->row[low].rule];
}

void pw_cfi_free(pw_cfi_table *table);

#endif

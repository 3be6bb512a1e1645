/* Runs the instructions of a function's call frame information (DW_CFA_*). */
#ifndef PITWALL_CFI_PROGRAM_H
#define PITWALL_CFI_PROGRAM_H

#include "native/cfi_bytes.h"
#include "native/cfi_table.h"

/* What a CIE says of all functions that refer to it. */
typedef struct {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_encoding;
    bool signal, augmented;    /* augmented: a function has augmentation data, whose length comes first */
    const uint8_t *program, *program_end;
} pw_cfi_common;

/* The rules in force. A rule's expression is a place in the section. */
typedef struct {
    uint8_t how[PW_REGISTERS];
    int32_t value[PW_REGISTERS];
    uint8_t cfa_register;
    bool cfa_is_expression;
    int32_t cfa_value;
} pw_cfi_state;

typedef struct {
    const uint8_t *section;     /* expressions count from here */
    uintptr_t section_address;
    uint32_t at;                /* the instruction that the rules begin with, from the function's start */
    pw_cfi_state state, initial, remembered[8];
    uint32_t depth;
    uint64_t steps_left;        /* instructions that may still be run in this section */
    bool (*row)(void *to, uint32_t at, const pw_cfi_state *state); /* false: no room */
    void *to;
} pw_cfi_machine;

/* Reports a row for each place where the rules change. False: an instruction is unknown or wrong. */
bool pw_cfi_run(pw_cfi_machine *m, const pw_cfi_common *common, pw_cfi_bytes program, uint32_t length);

#endif

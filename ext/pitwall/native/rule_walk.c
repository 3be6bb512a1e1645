#include "native/rule_walk.h"

#if PW_UNWINDS

#include "native/cfi_expression.h"
#include <stdatomic.h>
#include <string.h>

/* ---- by a rule ---- */

static bool
rare_register(pw_walk *w, const pw_cfi_table *t, const pw_cfi_rare *rare, int i, uintptr_t cfa, uintptr_t *value)
{
    int32_t operand = rare->value[i];
    switch (rare->how[i]) {
      case PW_CFI_AT_OFFSET: return pw_word(&w->words, cfa + (uintptr_t)(intptr_t)operand, value);
      case PW_CFI_OFFSET: *value = cfa + (uintptr_t)(intptr_t)operand; return true;
      case PW_CFI_REGISTER:
        if (operand < 0 || operand >= PW_REGISTERS) return false;
        *value = w->r[operand];
        return true;
      case PW_CFI_EXPRESSION: return pw_cfi_evaluate(t, operand, w->r, &cfa, &w->words, value);
      case PW_CFI_AT_EXPRESSION: {
        uintptr_t at;
        return pw_cfi_evaluate(t, operand, w->r, &cfa, &w->words, &at) && pw_word(&w->words, at, value);
      }
      default: *value = i == PW_SP ? cfa : w->r[i]; return true;
    }
}

static pw_walk_result
step_rarely(pw_walk *w, const pw_cfi_table *t, const pw_cfi_rare *rare, uintptr_t *cfa)
{
    uintptr_t caller[PW_REGISTERS];
    if (rare->cfa_is_expression) {
        if (!pw_cfi_evaluate(t, rare->cfa_value, w->r, NULL, &w->words, cfa)) return PW_WALK_LOST;
    }
    else *cfa = w->r[rare->cfa_register] + (uintptr_t)(intptr_t)rare->cfa_value;
    if (rare->how[PW_RETURN] == PW_CFI_UNDEFINED) return PW_WALK_ENDED;
    bool moves = PW_RETURN_IN_REGISTER || rare->how[PW_RETURN] != PW_CFI_SAME;
    if (!moves || (!rare->signal && *cfa <= w->r[PW_SP] && !w->interrupted)) return PW_WALK_LOST;
    for (int i = 0; i < PW_REGISTERS; i++) {
        /* A register that is lost is of no use to the callers, except for the two that lead to them. */
        if (!rare_register(w, t, rare, i, *cfa, &caller[i]) && (i == PW_SP || i == PW_RETURN)) return PW_WALK_LOST;
    }
    caller[PW_PC] = pw_return_address(caller[PW_RETURN]);
    memcpy(w->r, caller, sizeof caller);
    w->interrupted = rare->signal;
    w->fp_at = 0;
    return PW_WALK_ON;
}

/* Notes what the caller's place depends on: the frame's registers, and at most two words in memory. */
static inline void
note_how(const pw_walk *w, const pw_cfi_rule *rule, pw_native_frame *frame)
{
    frame->sp = w->r[PW_SP];
    frame->fp = w->r[PW_FP];
    if (!rule->saved[PW_SAVED_RETURN] || w->interrupted) return;
    frame->return_at = rule->saved[PW_SAVED_RETURN];
    if (rule->cfa_register == PW_SP) frame->found = PW_FOUND_BY_SP;
    else if (rule->cfa_register == PW_FP) {
        uintptr_t below = w->fp_at ? (frame->cfa - w->fp_at) / 8 : 0;
        frame->fp_below = (uint16_t)below;
        if (below <= UINT16_MAX) frame->found = PW_FOUND_BY_FP;
    }
}

static inline pw_walk_result
step_plainly(pw_walk *w, const pw_cfi_rule *rule, pw_native_frame *frame)
{
    uintptr_t cfa = w->r[rule->cfa_register] + (uintptr_t)(intptr_t)rule->cfa_offset;
    frame->cfa = cfa;
    if (!rule->saved[PW_SAVED_RETURN] && !(PW_RETURN_IN_REGISTER && w->interrupted)) return PW_WALK_LOST;
    if (cfa <= w->r[PW_SP] && !(PW_RETURN_IN_REGISTER && cfa == w->r[PW_SP] && w->interrupted)) return PW_WALK_LOST;
    note_how(w, rule, frame);
    if (rule->saved[PW_SAVED_FP]) w->fp_at = cfa + (uintptr_t)((intptr_t)rule->saved[PW_SAVED_FP] * 8);
    for (int i = 0; i < PW_SAVED_REGISTERS; i++) {
        if (!rule->saved[i]) continue;
        uintptr_t at = cfa + (uintptr_t)((intptr_t)rule->saved[i] * 8);
        if (!pw_word(&w->words, at, &w->r[pw_saved_registers[i]])) return PW_WALK_LOST;
    }
    w->r[PW_PC] = pw_return_address(w->r[PW_RETURN]);
    w->r[PW_SP] = cfa;
    w->interrupted = false;
    return PW_WALK_ON;
}

/* ---- rules found before ---- */

/* The same call sites are on many stacks. An entry is found in one place of memory, a rule in five. Handlers of several
 * threads may write an entry at the same time: then its two words don't fit together, and it is not used. */
enum { CACHE_BITS = 12 };
typedef struct { _Atomic uint64_t check, value; } cached_rule;
static cached_rule cache[1 << CACHE_BITS];

static inline cached_rule *
cache_entry(uintptr_t at)
{
    return &cache[(uint64_t)at * 0x9e3779b97f4a7c15u >> (64 - CACHE_BITS)];
}

/* Which object, how far from the function's start, which rule. */
static inline uint64_t
cache_value(const pw_walk *w, const pw_code *code, uint64_t distance, const pw_cfi_rule *rule)
{
    return (uint64_t)(code - w->map->code) << 48 | distance << 16 | (uint64_t)(rule - code->table->rule);
}

static inline uint64_t
cache_check(const pw_walk *w, uintptr_t at, uint64_t value)
{
    return (at ^ value) + w->map->generation * 0xd1342543de82ef95u;
}

/* Finds the rule for the frame's pc, and describes the frame. NULL: none. */
static inline const pw_cfi_rule *
find_rule(pw_walk *w, pw_native_frame *frame)
{
    uintptr_t at = frame->pc;
    cached_rule *entry = cache_entry(at);
    uint64_t value = atomic_load_explicit(&entry->value, memory_order_relaxed);
    if (atomic_load_explicit(&entry->check, memory_order_relaxed) == cache_check(w, at, value)) {
        w->code = &w->map->code[value >> 48];
        frame->function = at - (value >> 16 & UINT32_MAX);
        frame->object = w->code->object;
        return &w->code->table->rule[value & UINT16_MAX];
    }
    w->code = pw_code_at(w->map, at);
    frame->kind = w->code ? PW_NATIVE_UNKNOWN : PW_NATIVE_COMPILED;
    if (!w->code || !w->code->table) return NULL;
    const pw_cfi_table *t = w->code->table;
    const pw_cfi_function *function = pw_cfi_function_at(t, at);
    if (!function) return NULL;
    const pw_cfi_rule *rule = pw_cfi_rule_at(t, function, at);
    if (rule->kind == PW_CFI_NONE) return NULL;
    frame->kind = PW_NATIVE_FUNCTION;
    frame->function = t->base + function->start;
    frame->object = w->code->object;
    value = cache_value(w, w->code, at - frame->function, rule);
    atomic_store_explicit(&entry->value, value, memory_order_relaxed);
    atomic_store_explicit(&entry->check, cache_check(w, at, value), memory_order_relaxed);
    return rule;
}

bool
pw_walk_by_rule(pw_walk *w, pw_native_frame *frame, pw_walk_result *result)
{
    *frame = (pw_native_frame){.pc = w->r[PW_PC] - !w->interrupted, .kind = PW_NATIVE_FUNCTION};
    const pw_cfi_rule *rule = find_rule(w, frame);
    if (!rule) return false;
    const pw_cfi_table *t = w->code->table;
    if (rule->kind == PW_CFI_PLAIN) *result = step_plainly(w, rule, frame);
    else if (rule->kind == PW_CFI_LAST) {
        *result = PW_WALK_ENDED;
        frame->found = PW_FOUND_NONE;
        frame->sp = w->r[PW_SP];
        frame->fp = w->r[PW_FP];
    }
    else *result = step_rarely(w, t, &t->rare[rule->cfa_offset], &frame->cfa);
    /* The first function of a fiber or a context returns to 0. */
    if (*result == PW_WALK_ON && w->r[PW_PC] == 0 && !w->interrupted) *result = PW_WALK_ENDED;
    return true;
}

pw_call_kind
pw_call_returning_to(const pw_code_map *map, uintptr_t address, uintptr_t *start)
{
    const pw_code *code = pw_code_at(map, address - 1);
    *start = 0;
    if (!code || !code->table || address - 8 < code->from || address >= code->to) return PW_NO_CALL;
    const pw_cfi_function *function = pw_cfi_function_at(code->table, address - 1);
    if (!function || address - 1 == code->table->base + function->start) return PW_NO_CALL;
    *start = code->table->base + function->start;
    return code->stays ? pw_call_before((const uint8_t *)address) : PW_CALL_OF_ADDRESS;
}

#else
typedef int pw_nothing_to_walk;
#endif

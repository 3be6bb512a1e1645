#include "native/rule_walk.h"

#if PW_UNWINDS

#include "native/cfi_expression.h"
#include <string.h>

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
    return PW_WALK_ON;
}

static inline pw_walk_result
step_plainly(pw_walk *w, const pw_cfi_rule *rule, uintptr_t *result)
{
    uintptr_t cfa = w->r[rule->cfa_register] + (uintptr_t)(intptr_t)rule->cfa_offset;
    *result = cfa;
    if (!rule->saved[PW_SAVED_RETURN] && !(PW_RETURN_IN_REGISTER && w->interrupted)) return PW_WALK_LOST;
    if (cfa <= w->r[PW_SP] && !(PW_RETURN_IN_REGISTER && cfa == w->r[PW_SP] && w->interrupted)) return PW_WALK_LOST;
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

bool
pw_walk_by_rule(pw_walk *w, pw_native_frame *frame, pw_walk_result *result)
{
    uintptr_t at = w->r[PW_PC] - !w->interrupted;
    const pw_code *code = w->code;
    if (!code || at < code->from || at >= code->to) code = pw_code_at(w->map, at);
    *frame = (pw_native_frame){.pc = at, .kind = code ? PW_NATIVE_UNKNOWN : PW_NATIVE_COMPILED};
    w->code = code;
    const pw_cfi_table *t = code ? code->table : NULL;
    uint32_t function = t ? pw_cfi_function(t, at) : UINT32_MAX;
    if (function == UINT32_MAX) return false;
    const pw_cfi_rule *rule = pw_cfi_rule_at(t, function, at);
    if (rule->kind == PW_CFI_NONE) return false;
    frame->function = t->base + t->starts[function];
    frame->kind = PW_NATIVE_FUNCTION;
    if (rule->kind == PW_CFI_PLAIN) *result = step_plainly(w, rule, &frame->cfa);
    else if (rule->kind == PW_CFI_LAST) *result = PW_WALK_ENDED;
    else *result = step_rarely(w, t, &t->rare[rule->cfa_offset], &frame->cfa);
    /* The first function of a fiber or a context returns to 0. */
    if (*result == PW_WALK_ON && w->r[PW_PC] == 0 && !w->interrupted) *result = PW_WALK_ENDED;
    return true;
}

bool
pw_is_call_site(const pw_code_map *map, uintptr_t address)
{
    const pw_code *code = pw_code_at(map, address - 1);
    if (!code || !code->table || address - 8 < code->from || address >= code->to) return false;
    uint32_t function = pw_cfi_function(code->table, address - 1);
    if (function == UINT32_MAX || address - 1 == code->table->base + code->table->starts[function]) return false;
    return !code->stays || pw_follows_call((const uint8_t *)address);
}

#else
typedef int pw_nothing_to_walk;
#endif

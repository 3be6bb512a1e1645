#include "native/interpreter.h"

#if PW_UNWINDS

#include <stdatomic.h>

enum { LEAST_BYTES = 12000, MOST_PARTS = 8 };

/* Its start, then those of parts that the compiler has put elsewhere. */
static _Atomic uintptr_t parts[MOST_PARTS], caller, ruby_from, ruby_size;

static void
add_part(uintptr_t function)
{
    for (int i = 0; i < MOST_PARTS; i++) {
        uintptr_t there = atomic_load(&parts[i]);
        if (there == function) return;
        if (there) continue;
        atomic_store(&parts[i], function);
        return;
    }
}

/* A part is entered by a jump, in the middle of a function: its frame is there already. */
static bool
is_part(const pw_cfi_table *t, const pw_cfi_function *function)
{
    const pw_cfi_rule *rule = pw_cfi_rule_at(t, function, t->base + function->start);
    return rule->kind == PW_CFI_PLAIN && !(rule->cfa_register == PW_SP && rule->cfa_offset == PW_CFA_AT_ENTRY);
}

static void
learn_parts(const pw_cfi_table *t, const pw_cfi_function *function)
{
    const uint8_t *code = (const uint8_t *)(t->base + function->start);
    for (uint32_t i = 0; i + 8 < function->length; i++) {
        uintptr_t target = pw_jump_target(code + i);
        const pw_cfi_function *to = target ? pw_cfi_function_at(t, target) : NULL;
        if (to && to != function && is_part(t, to)) add_part(t->base + to->start);
    }
}

void
pw_interpreter_learn(const pw_cfi_table *ruby, const pw_native_frame *frames, uint32_t count)
{
    if (atomic_load(&parts[0])) return;
    for (uint32_t i = 0; i < count; i++) {
        const pw_cfi_function *function = pw_cfi_function_at(ruby, frames[i].function);
        if (!function || function->length <= LEAST_BYTES) continue;
        atomic_store(&ruby_from, ruby->base);
        atomic_store(&ruby_size, ruby->size);
        if (i + 1 < count) atomic_store(&caller, frames[i + 1].function);
        add_part(frames[i].function);
        learn_parts(ruby, function);
        return;
    }
}

bool
pw_unwind_is_interpreter(uintptr_t function)
{
    for (int i = 0; i < MOST_PARTS; i++) {
        uintptr_t part = atomic_load_explicit(&parts[i], memory_order_relaxed);
        if (!part) return false;
        if (part == function) return true;
    }
    return false;
}

uint32_t
pw_interpreter_functions(uintptr_t *functions, uint32_t room)
{
    uint32_t n = 0;
    while (n < MOST_PARTS && n < room && (functions[n] = atomic_load(&parts[n]))) n++;
    return n;
}

bool
pw_interpreter_enters_code(uintptr_t function)
{
    uintptr_t from = atomic_load_explicit(&ruby_from, memory_order_relaxed);
    return function - from >= atomic_load_explicit(&ruby_size, memory_order_relaxed) || pw_unwind_is_interpreter(function)
           || function == atomic_load_explicit(&caller, memory_order_relaxed);
}

#else
void pw_interpreter_learn(const pw_cfi_table *ruby, const pw_native_frame *frames, uint32_t count) {}
bool pw_unwind_is_interpreter(uintptr_t function) { return false; }
uint32_t pw_interpreter_functions(uintptr_t *functions, uint32_t room) { return 0; }
bool pw_interpreter_enters_code(uintptr_t function) { return false; }
#endif

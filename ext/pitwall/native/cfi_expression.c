#include "native/cfi_expression.h"

#if PW_UNWINDS

#include "native/cfi_bytes.h"

enum { DEPTH = 32, STEPS = 256 };

typedef struct {
    uintptr_t stack[DEPTH];
    uint32_t depth;
    bool bad;
} values;

static void
push(values *v, uint64_t value)
{
    if (v->depth == DEPTH) v->bad = true;
    else v->stack[v->depth++] = value;
}

static uintptr_t
pop(values *v)
{
    if (!v->depth) {
        v->bad = true;
        return 0;
    }
    return v->stack[--v->depth];
}

static void
pick(values *v, uint32_t from_top)
{
    if (from_top >= v->depth) v->bad = true;
    else push(v, v->stack[v->depth - 1 - from_top]);
}

static void
rotate(values *v)
{
    uintptr_t a = pop(v), b = pop(v), c = pop(v);
    push(v, a);
    push(v, c);
    push(v, b);
}

/* Operations with two operands. `b` is the upper one. */
static bool
combine(values *v, uint8_t code)
{
    uintptr_t b = pop(v), a = pop(v);
    intptr_t sa = (intptr_t)a, sb = (intptr_t)b;
    switch (code) {
      case 0x1a: push(v, a & b); return true;
      case 0x1c: push(v, a - b); return true;
      case 0x1e: push(v, a * b); return true;
      case 0x21: push(v, a | b); return true;
      case 0x22: push(v, a + b); return true;
      case 0x24: push(v, b < 64 ? a << b : 0); return true;
      case 0x25: push(v, b < 64 ? a >> b : 0); return true;
      case 0x26: push(v, (uintptr_t)(b < 63 ? sa >> b : sa < 0 ? -1 : 0)); return true;
      case 0x27: push(v, a ^ b); return true;
      case 0x29: push(v, a == b); return true;
      case 0x2a: push(v, sa >= sb); return true;
      case 0x2b: push(v, sa > sb); return true;
      case 0x2c: push(v, sa <= sb); return true;
      case 0x2d: push(v, sa < sb); return true;
      case 0x2e: push(v, a != b); return true;
      default: return false;
    }
}

static void
jump(pw_cfi_bytes *b, const uint8_t *begin, int16_t by)
{
    if (by < begin - b->at || by > b->end - b->at) b->bad = true;
    else b->at += by;
}

static void
read_at(values *v, pw_stack_words *words, uintptr_t address)
{
    uintptr_t word = 0;
    if (!pw_word(words, address, &word)) v->bad = true;
    push(v, word);
}

static bool
operate(values *v, pw_cfi_bytes *b, const uint8_t *begin, const uintptr_t *registers, pw_stack_words *words)
{
    uint8_t code = pw_bytes_u8(b);
    uint64_t reg;
    if (code >= 0x30 && code <= 0x4f) return push(v, code - 0x30u), true; /* lit */
    if (code >= 0x70 && code <= 0x8f) {                                   /* breg */
        if (code - 0x70 >= PW_REGISTERS) return false;
        return push(v, registers[code - 0x70] + (uint64_t)pw_bytes_sleb(b)), true;
    }
    switch (code) {
      case 0x06: read_at(v, words, pop(v)); return true;                  /* deref */
      case 0x08: push(v, pw_bytes_u8(b)); return true;                    /* const1u ... consts */
      case 0x09: push(v, (uint64_t)(int8_t)pw_bytes_u8(b)); return true;
      case 0x0a: push(v, pw_bytes_u16(b)); return true;
      case 0x0b: push(v, (uint64_t)(int16_t)pw_bytes_u16(b)); return true;
      case 0x0c: push(v, pw_bytes_u32(b)); return true;
      case 0x0d: push(v, (uint64_t)(int32_t)pw_bytes_u32(b)); return true;
      case 0x03: case 0x0e: case 0x0f: push(v, pw_bytes_u64(b)); return true;
      case 0x10: push(v, pw_bytes_uleb(b)); return true;
      case 0x11: push(v, (uint64_t)pw_bytes_sleb(b)); return true;
      case 0x12: pick(v, 0); return true;                                 /* dup */
      case 0x13: pop(v); return true;                                     /* drop */
      case 0x14: pick(v, 1); return true;                                 /* over */
      case 0x15: pick(v, pw_bytes_u8(b)); return true;
      case 0x16: {                                                        /* swap */
        uintptr_t upper = pop(v), lower = pop(v);
        push(v, upper);
        push(v, lower);
        return true;
      }
      case 0x17: rotate(v); return true;
      case 0x1f: push(v, -pop(v)); return true;
      case 0x20: push(v, ~pop(v)); return true;
      case 0x23: push(v, pop(v) + pw_bytes_uleb(b)); return true;         /* plus_uconst */
      case 0x28: {                                                        /* bra */
        int16_t by = (int16_t)pw_bytes_u16(b);
        if (pop(v)) jump(b, begin, by);
        return true;
      }
      case 0x2f: jump(b, begin, (int16_t)pw_bytes_u16(b)); return true;   /* skip */
      case 0x92:                                                          /* bregx */
        reg = pw_bytes_uleb(b);
        if (reg >= PW_REGISTERS) return false;
        push(v, registers[reg] + (uint64_t)pw_bytes_sleb(b));
        return true;
      case 0x94:                                                          /* deref_size */
        if (pw_bytes_u8(b) != 8) return false;
        read_at(v, words, pop(v));
        return true;
      case 0x96: return true;                                             /* nop */
      default: return combine(v, code);
    }
}

bool
pw_cfi_evaluate(const pw_cfi_table *table, int32_t expression, const uintptr_t registers[PW_REGISTERS],
                const uintptr_t *initial, pw_stack_words *words, uintptr_t *result)
{
    uint16_t length;
    memcpy(&length, table->expressions + expression, 2);
    const uint8_t *begin = table->expressions + expression + 2;
    pw_cfi_bytes b = {.at = begin, .end = begin + length};
    values v = {.depth = 0};
    if (initial) push(&v, *initial);
    for (int steps = 0; b.at < b.end; steps++) {
        if (steps == STEPS || !operate(&v, &b, begin, registers, words) || v.bad || b.bad) return false;
    }
    *result = pop(&v);
    return !v.bad;
}

#else
typedef int pw_nothing_to_evaluate;
#endif

#include "native/cfi_program.h"

#if PW_UNWINDS

static bool
set(pw_cfi_machine *m, uint64_t reg, uint8_t how, int64_t value)
{
    if (value != (int32_t)value) return false;
    if (reg >= PW_REGISTERS) return true; /* vector registers and such are not followed */
    m->state.how[reg] = how;
    m->state.value[reg] = (int32_t)value;
    return true;
}

static bool
restore(pw_cfi_machine *m, uint64_t reg)
{
    if (reg >= PW_REGISTERS) return true;
    m->state.how[reg] = m->initial.how[reg];
    m->state.value[reg] = m->initial.value[reg];
    return true;
}

static bool
set_cfa(pw_cfi_machine *m, uint64_t reg, int64_t offset)
{
    if (reg >= PW_REGISTERS || offset != (int32_t)offset) return false;
    m->state.cfa_register = (uint8_t)reg;
    m->state.cfa_is_expression = false;
    m->state.cfa_value = (int32_t)offset;
    return true;
}

/* Its place: that of its length. */
static int64_t
expression(pw_cfi_machine *m, pw_cfi_bytes *b)
{
    int64_t place = b->at - m->section;
    pw_bytes_skip(b, pw_bytes_uleb(b));
    return place;
}

static bool
advance(pw_cfi_machine *m, uint64_t by, uint64_t align)
{
    if (by > UINT32_MAX || align > UINT32_MAX) return false;
    if (by * align == 0) return true;
    if (!m->row(m->to, m->at, &m->state)) return false;
    uint64_t at = m->at + by * align;
    if (at > UINT32_MAX) return false;
    m->at = (uint32_t)at;
    return true;
}

static int64_t times(uint64_t value, int64_t align) { return (int64_t)(value * (uint64_t)align); }

/* Instructions with an operand in the low 6 bits are told by their high 2 bits. */
static bool
step(pw_cfi_machine *m, const pw_cfi_common *c, pw_cfi_bytes *b)
{
    uint8_t code = pw_bytes_u8(b), low = code & 0x3f;
    uint64_t reg;
    switch (code >> 6) {
      case 1: return advance(m, low, c->code_align);
      case 2: return set(m, low, PW_CFI_AT_OFFSET, times(pw_bytes_uleb(b), c->data_align));
      case 3: return restore(m, low);
    }
    switch (code) {
      case 0x00: return true;                                                     /* nop */
      case 0x02: return advance(m, pw_bytes_u8(b), c->code_align);                /* advance_loc1 */
      case 0x03: return advance(m, pw_bytes_u16(b), c->code_align);               /* advance_loc2 */
      case 0x04: return advance(m, pw_bytes_u32(b), c->code_align);               /* advance_loc4 */
      case 0x05: reg = pw_bytes_uleb(b);                                          /* offset_extended */
        return set(m, reg, PW_CFI_AT_OFFSET, times(pw_bytes_uleb(b), c->data_align));
      case 0x06: return restore(m, pw_bytes_uleb(b));                             /* restore_extended */
      case 0x07: return set(m, pw_bytes_uleb(b), PW_CFI_UNDEFINED, 0);            /* undefined */
      case 0x08: return set(m, pw_bytes_uleb(b), PW_CFI_SAME, 0);                 /* same_value */
      case 0x09: reg = pw_bytes_uleb(b);                                          /* register */
        return set(m, reg, PW_CFI_REGISTER, (int64_t)(pw_bytes_uleb(b) & INT64_MAX));
      case 0x0a:                                                                  /* remember_state */
        if (m->depth == sizeof m->remembered / sizeof m->remembered[0]) return false;
        m->remembered[m->depth++] = m->state;
        return true;
      case 0x0b:                                                                  /* restore_state */
        if (!m->depth) return false;
        m->state = m->remembered[--m->depth];
        return true;
      case 0x0c: reg = pw_bytes_uleb(b);                                          /* def_cfa */
        return set_cfa(m, reg, (int64_t)pw_bytes_uleb(b));
      case 0x0d: return !m->state.cfa_is_expression                               /* def_cfa_register */
                        && set_cfa(m, pw_bytes_uleb(b), m->state.cfa_value);
      case 0x0e: return !m->state.cfa_is_expression                               /* def_cfa_offset */
                        && set_cfa(m, m->state.cfa_register, (int64_t)pw_bytes_uleb(b));
      case 0x0f:                                                                  /* def_cfa_expression */
        m->state.cfa_is_expression = true;
        m->state.cfa_value = (int32_t)expression(m, b);
        return true;
      case 0x10: reg = pw_bytes_uleb(b);                                          /* expression */
        return set(m, reg, PW_CFI_AT_EXPRESSION, expression(m, b));
      case 0x11: reg = pw_bytes_uleb(b);                                          /* offset_extended_sf */
        return set(m, reg, PW_CFI_AT_OFFSET, times((uint64_t)pw_bytes_sleb(b), c->data_align));
      case 0x12: reg = pw_bytes_uleb(b);                                          /* def_cfa_sf */
        return set_cfa(m, reg, times((uint64_t)pw_bytes_sleb(b), c->data_align));
      case 0x13: return !m->state.cfa_is_expression                               /* def_cfa_offset_sf */
                        && set_cfa(m, m->state.cfa_register, times((uint64_t)pw_bytes_sleb(b), c->data_align));
      case 0x14: reg = pw_bytes_uleb(b);                                          /* val_offset */
        return set(m, reg, PW_CFI_OFFSET, times(pw_bytes_uleb(b), c->data_align));
      case 0x15: reg = pw_bytes_uleb(b);                                          /* val_offset_sf */
        return set(m, reg, PW_CFI_OFFSET, times((uint64_t)pw_bytes_sleb(b), c->data_align));
      case 0x16: reg = pw_bytes_uleb(b);                                          /* val_expression */
        return set(m, reg, PW_CFI_EXPRESSION, expression(m, b));
      case 0x2d: return true; /* aarch64: from here on the return address is signed (pw_return_address) */
      case 0x2e: pw_bytes_uleb(b); return true;                                   /* GNU_args_size */
      case 0x2f: reg = pw_bytes_uleb(b);                                  /* GNU_negative_offset_extended */
        return set(m, reg, PW_CFI_AT_OFFSET, -times(pw_bytes_uleb(b), c->data_align));
      default: return false; /* set_loc, too: no compiler uses it */
    }
}

static bool
run(pw_cfi_machine *m, const pw_cfi_common *c, pw_cfi_bytes b)
{
    while (b.at < b.end) {
        if (!m->steps_left || !step(m, c, &b) || b.bad) return false;
        m->steps_left--;
    }
    return true;
}

bool
pw_cfi_run(pw_cfi_machine *m, const pw_cfi_common *common, pw_cfi_bytes program, uint32_t length)
{
    memset(&m->state, 0, sizeof m->state);
    memset(&m->initial, 0, sizeof m->initial);
    m->at = 0;
    m->depth = 0;
    if (!run(m, common, (pw_cfi_bytes){.at = common->program, .end = common->program_end}) || m->at) return false;
    m->initial = m->state;
    m->depth = 0;
    return run(m, common, program) && (m->at >= length || m->row(m->to, m->at, &m->state));
}

#else
typedef int pw_nothing_to_run;
#endif

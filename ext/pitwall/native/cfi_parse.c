#include "native/cfi_parse.h"

#if PW_UNWINDS

#include "native/cfi_program.h"
#include <sys/mman.h>

/* A function's description, where it was found. */
typedef struct {
    uint32_t start, length;      /* start: from the section's `from` */
    uint32_t place;              /* of its instructions, in the section */
    uint32_t end;
    uint32_t common;             /* of its CIE */
} fde;

enum { MOST_RULES = UINT16_MAX, RULE_SLOTS = 1 << 17, STEPS_A_BYTE = 16, MOST_FAILED = 1024 };

/* Everything that grows is in reserved memory. Only pages that are written take up memory. */
typedef struct {
    const pw_cfi_section *section;
    uint8_t *memory;
    size_t reserved;
    fde *fdes;
    uint32_t fde_count, fde_room;
    pw_cfi_function *function;
    uint32_t functions;
    pw_cfi_row *row;
    uint32_t rows, row_room;
    pw_cfi_rule *rule;
    uint32_t rules;
    uint16_t *rule_slots;        /* a hash table: number of a rule; 0: free */
    pw_cfi_rare *rare;
    uint32_t rares, rare_room;
    uint8_t *expressions;
    uint32_t expressions_size, expressions_room;
    const fde *now;
    uint32_t first_row;
    bool signal;
} builder;

/* ---- entries: each is a CIE or an FDE ---- */

static bool
read_common(const builder *b, uint32_t place, pw_cfi_common *c)
{
    const pw_cfi_section *s = b->section;
    pw_cfi_bytes e = {.at = s->bytes + place, .end = s->bytes + s->size};
    uint64_t length = pw_bytes_u32(&e);
    if (length == UINT32_MAX) length = pw_bytes_u64(&e);
    if (e.bad || length > pw_bytes_left(&e)) return false;
    e.end = e.at + length;
    *c = (pw_cfi_common){.program_end = e.end};
    if (pw_bytes_u32(&e) != 0) return false; /* an FDE */
    uint8_t version = pw_bytes_u8(&e);
    if (version != 1 && version != 3 && version != 4) return false;
    const char *letters = (const char *)e.at;
    const uint8_t *nul = memchr(e.at, 0, pw_bytes_left(&e));
    if (!nul) return false;
    e.at = nul + 1;
    if (version == 4) pw_bytes_skip(&e, 2); /* sizes of an address and of a segment */
    c->code_align = pw_bytes_uleb(&e);
    c->data_align = pw_bytes_sleb(&e);
    uint64_t returns = version == 1 ? pw_bytes_u8(&e) : pw_bytes_uleb(&e);
    if (returns != PW_RETURN) return false;
    c->augmented = letters[0] == 'z';
    if (!c->augmented && letters[0]) return false;
    const uint8_t *program = NULL;
    if (c->augmented) {
        uint64_t size = pw_bytes_uleb(&e);
        if (size > pw_bytes_left(&e)) return false;
        program = e.at + size;
        letters++;
    }
    for (; *letters; letters++) {
        switch (*letters) {
          case 'R': c->pointer_encoding = pw_bytes_u8(&e); break;
          case 'L': pw_bytes_u8(&e); break;
          case 'P': {
            uint8_t encoding = pw_bytes_u8(&e);
            pw_bytes_pointer(&e, encoding & 0x7f, 0);
            break;
          }
          case 'S': c->signal = true; break;
          case 'B': case 'G': break; /* aarch64: the second key signs return addresses; memory tags */
          default: return false;
        }
    }
    c->program = program ? program : e.at;
    return !e.bad && c->program <= c->program_end;
}

static void
note_fde(builder *b, const pw_cfi_common *c, pw_cfi_bytes e, uint32_t common)
{
    const pw_cfi_section *s = b->section;
    uintptr_t start = pw_bytes_pointer(&e, c->pointer_encoding, s->address + (uintptr_t)(e.at - s->bytes));
    uint64_t length = pw_bytes_pointer(&e, c->pointer_encoding & 0x0f, 0);
    if (c->augmented) pw_bytes_skip(&e, pw_bytes_uleb(&e));
    if (e.bad || start < s->from || start >= s->to || !length || length > s->to - start) return;
    if (b->fde_count == b->fde_room) return;
    b->fdes[b->fde_count++] = (fde){(uint32_t)(start - s->from), (uint32_t)length, (uint32_t)(e.at - s->bytes),
                                    (uint32_t)(e.end - s->bytes), common};
}

static void
list_fdes(builder *b)
{
    const pw_cfi_section *s = b->section;
    pw_cfi_bytes e = {.at = s->bytes, .end = s->bytes + s->size};
    pw_cfi_common c = {0};
    uint32_t common = UINT32_MAX, failed = 0;
    bool usable = false;
    while (pw_bytes_left(&e) >= 4) {
        uint64_t length = pw_bytes_u32(&e);
        if (length == UINT32_MAX) length = pw_bytes_u64(&e);
        if (length < 4 || e.bad || length > pw_bytes_left(&e)) return; /* 0: the end */
        pw_cfi_bytes entry = {.at = e.at, .end = e.at + length};
        uintptr_t here = (uintptr_t)(e.at - s->bytes);
        e.at += length;
        uint32_t back = pw_bytes_u32(&entry); /* from here to its CIE; 0: it is a CIE */
        if (back == 0) continue;
        if (back > here) {
            if (failed++ == MOST_FAILED) return;
            continue;
        }
        if (common != here - back) {
            common = (uint32_t)(here - back);
            usable = read_common(b, common, &c);
        }
        if (usable) note_fde(b, &c, entry, common);
        else if (failed++ == MOST_FAILED) return;
    }
}

/* Most sections are sorted already, or nearly so. */
static void
sort_fdes(fde *f, uint32_t n, fde *room)
{
    bool sorted = true;
    for (uint32_t i = 1; i < n && sorted; i++) sorted = f[i - 1].start <= f[i].start;
    if (sorted) return;
    for (uint64_t run = 1; run < n; run *= 2) {
        for (uint64_t low = 0; low < n; low += 2 * run) {
            uint64_t middle = low + run < n ? low + run : n, high = low + 2 * run < n ? low + 2 * run : n;
            uint64_t i = low, j = middle;
            for (uint64_t k = low; k < high; k++) {
                bool first = i < middle && (j >= high || f[i].start <= f[j].start);
                room[k] = first ? f[i++] : f[j++];
            }
        }
        memcpy(f, room, n * sizeof *f);
    }
}

/* ---- rules ---- */

static uint16_t
number_of_rule(builder *b, const pw_cfi_rule *rule)
{
    const uint8_t *bytes = (const uint8_t *)rule;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < sizeof *rule; i++) hash = (hash ^ bytes[i]) * 16777619u;
    for (uint32_t at = (hash ^ hash >> 15) % RULE_SLOTS;; at = (at + 1) % RULE_SLOTS) {
        uint16_t number = b->rule_slots[at];
        if (number && memcmp(&b->rule[number], rule, sizeof *rule) == 0) return number;
        if (number) continue;
        if (b->rules == MOST_RULES) return 0;
        b->rule[b->rules] = *rule;
        return b->rule_slots[at] = (uint16_t)b->rules++;
    }
}

/* Copies the expression at that place of the section. Returns where it is now, or -1. */
static int32_t
keep_expression(builder *b, int32_t place)
{
    enum { MOST = 256 };
    const pw_cfi_section *s = b->section;
    pw_cfi_bytes e = {.at = s->bytes + place, .end = s->bytes + s->size};
    uint64_t length = pw_bytes_uleb(&e);
    const uint8_t *from = pw_bytes_skip(&e, length);
    if (!from || e.bad || length > MOST || b->expressions_size + length + 2 > b->expressions_room) return -1;
    uint32_t at = b->expressions_size;
    uint16_t size = (uint16_t)length;
    memcpy(b->expressions + at, &size, 2);
    memcpy(b->expressions + at + 2, from, length);
    b->expressions_size += 2 + (uint32_t)length;
    return (int32_t)at;
}

static bool
keep_expressions(builder *b, pw_cfi_rare *rare)
{
    if (rare->cfa_is_expression && (rare->cfa_value = keep_expression(b, rare->cfa_value)) < 0) return false;
    for (int i = 0; i < PW_REGISTERS; i++) {
        if (rare->how[i] != PW_CFI_AT_EXPRESSION && rare->how[i] != PW_CFI_EXPRESSION) continue;
        if ((rare->value[i] = keep_expression(b, rare->value[i])) < 0) return false;
    }
    return true;
}

static uint16_t
rare_rule(builder *b, const pw_cfi_state *state)
{
    if (b->rares == b->rare_room) return 0;
    pw_cfi_rare *rare = &b->rare[b->rares];
    memset(rare, 0, sizeof *rare);
    memcpy(rare->how, state->how, sizeof rare->how);
    memcpy(rare->value, state->value, sizeof rare->value);
    rare->cfa_register = state->cfa_register;
    rare->cfa_is_expression = state->cfa_is_expression;
    rare->cfa_value = state->cfa_value;
    rare->signal = b->signal;
    if (!keep_expressions(b, rare)) return 0;
    pw_cfi_rule rule = {.kind = PW_CFI_RARE, .cfa_offset = (int32_t)b->rares};
    b->rares++;
    return number_of_rule(b, &rule);
}

/* Registers that calls spoil need no rule, except where a signal has interrupted code that uses them. */
static bool
plain_rule(const pw_cfi_state *state, pw_cfi_rule *rule)
{
    if (state->cfa_is_expression) return false;
    *rule = (pw_cfi_rule){.kind = PW_CFI_PLAIN, .cfa_register = state->cfa_register, .cfa_offset = state->cfa_value};
    if (state->how[PW_RETURN] == PW_CFI_UNDEFINED) {
        *rule = (pw_cfi_rule){.kind = PW_CFI_LAST};
        return true;
    }
    for (int i = 0; i < PW_SAVED_REGISTERS; i++) {
        uint8_t reg = pw_saved_registers[i];
        if (state->how[reg] == PW_CFI_SAME || (state->how[reg] == PW_CFI_UNDEFINED && reg != PW_FP)) continue;
        int32_t value = state->value[reg];
        if (state->how[reg] != PW_CFI_AT_OFFSET || value % 8 || !value || value / 8 != (int16_t)(value / 8)) return false;
        rule->saved[i] = (int16_t)(value / 8);
    }
    return state->how[PW_SP] == PW_CFI_SAME;
}

static bool
add_row(void *to, uint32_t at, const pw_cfi_state *state)
{
    builder *b = to;
    if (at >= b->now->length) return true;
    if (b->rows == b->row_room) return false;
    pw_cfi_rule rule;
    uint16_t number = !b->signal && plain_rule(state, &rule) ? number_of_rule(b, &rule) : rare_rule(b, state);
    uint32_t start = b->now->start + at;
    if (b->rows > b->first_row) {
        if (b->row[b->rows - 1].rule == number) return true;
        if (b->row[b->rows - 1].start == start) b->rows--;
    }
    b->row[b->rows++] = (pw_cfi_row){start, number};
    return true;
}

static void
run_fdes(builder *b)
{
    const pw_cfi_section *s = b->section;
    pw_cfi_machine m = {.section = s->bytes, .section_address = s->address, .row = add_row, .to = b,
                        .steps_left = (uint64_t)STEPS_A_BYTE * s->size};
    pw_cfi_common c = {0};
    uint32_t common = UINT32_MAX, end = 0;
    for (uint32_t i = 0; i < b->fde_count && m.steps_left; i++) {
        b->now = &b->fdes[i];
        if (b->now->start < end) continue; /* two descriptions of the same code */
        if (common != b->now->common) {
            common = b->now->common;
            read_common(b, common, &c);
            b->signal = c.signal;
        }
        b->first_row = b->rows;
        pw_cfi_bytes program = {.at = s->bytes + b->now->place, .end = s->bytes + b->now->end};
        if (!pw_cfi_run(&m, &c, program, b->now->length)) {
            b->rows = b->first_row;
            continue;
        }
        end = b->now->start + b->now->length;
        b->function[b->functions++] = (pw_cfi_function){b->now->start, b->now->length, b->first_row};
    }
    b->function[b->functions].first_row = b->rows;
}

/* ---- memory ---- */

static void *
map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Pieces of one block, one after the other. With `memory` NULL it only counts. */
typedef struct { uint8_t *memory; size_t used; } pieces;

static void *
piece(pieces *p, size_t count, size_t size)
{
    size_t at = (p->used + 7) & ~(size_t)7;
    p->used = at + count * size;
    return p->memory ? p->memory + at : NULL;
}

static void
place_pieces(builder *b, pieces *p)
{
    size_t size = b->section->size;
    /* The smallest FDE has 4 bytes of length, 4 of the CIE's place and 2 pointers; each row has an instruction. */
    b->fde_room = (uint32_t)(size / 12 + 1);
    b->row_room = (uint32_t)(size + b->fde_room);
    b->rare_room = (uint32_t)(size / 32 + 16);
    b->expressions_room = (uint32_t)(4 * size + 1024);
    b->fdes = piece(p, 2 * (size_t)b->fde_room, sizeof *b->fdes);
    b->function = piece(p, b->fde_room + 1, sizeof *b->function);
    b->row = piece(p, b->row_room, sizeof *b->row);
    b->rule = piece(p, MOST_RULES, sizeof *b->rule);
    b->rule_slots = piece(p, RULE_SLOTS, sizeof *b->rule_slots);
    b->rare = piece(p, b->rare_room, sizeof *b->rare);
    b->expressions = piece(p, b->expressions_room, 1);
}

static void
fill_buckets(pw_cfi_table *t, uint32_t buckets)
{
    uint32_t function = 0;
    for (uint32_t i = 0; i < buckets; i++) {
        while (function + 1 < t->functions && t->function[function + 1].start <= (uint64_t)i << PW_CFI_BUCKET_BITS) function++;
        t->buckets[i] = function;
    }
}

static void
place_table(const builder *b, pw_cfi_table *t, pieces *p)
{
    uint32_t buckets = (t->size >> PW_CFI_BUCKET_BITS) + 1;
    t->function = piece(p, b->functions + 1, sizeof *t->function);
    t->row = piece(p, b->rows, sizeof *t->row);
    t->buckets = piece(p, buckets, sizeof *t->buckets);
    t->rule = piece(p, b->rules, sizeof *t->rule);
    t->rare = piece(p, b->rares, sizeof *t->rare);
    t->expressions = piece(p, b->expressions_size, 1);
}

static pw_cfi_table *
table_of(const builder *b)
{
    const pw_cfi_section *s = b->section;
    pw_cfi_table sizes = {.base = s->from, .size = (uint32_t)(s->to - s->from), .functions = b->functions,
                          .rows = b->rows, .rules = b->rules, .rares = b->rares,
                          .expressions_size = b->expressions_size};
    pieces counted = {NULL, sizeof sizes};
    place_table(b, &sizes, &counted);
    pw_cfi_table *t = map(counted.used);
    if (!t) return NULL;
    *t = sizes;
    t->mapped = counted.used;
    pieces used = {(uint8_t *)t, sizeof *t};
    place_table(b, t, &used);
    memcpy(t->function, b->function, (t->functions + 1) * sizeof *t->function);
    memcpy(t->row, b->row, t->rows * sizeof *t->row);
    memcpy(t->rule, b->rule, t->rules * sizeof *t->rule);
    memcpy(t->rare, b->rare, t->rares * sizeof *t->rare);
    memcpy(t->expressions, b->expressions, t->expressions_size);
    fill_buckets(t, (t->size >> PW_CFI_BUCKET_BITS) + 1);
    return t;
}

pw_cfi_table *
pw_cfi_parse(const pw_cfi_section *section)
{
    enum { MOST = 1 << 30 };
    if (!section->bytes || section->size < 4 || section->size > MOST || section->to <= section->from
        || section->to - section->from >= UINT32_MAX) return NULL;
    builder b = {.section = section, .rules = 1};
    pieces counted = {NULL, 0};
    place_pieces(&b, &counted);
    uint8_t *memory = map(counted.used);
    if (!memory) return NULL;
    pieces used = {memory, 0};
    place_pieces(&b, &used);
    list_fdes(&b);
    sort_fdes(b.fdes, b.fde_count, b.fdes + b.fde_room);
    run_fdes(&b);
    pw_cfi_table *t = b.functions ? table_of(&b) : NULL;
    munmap(memory, counted.used);
    return t;
}

void
pw_cfi_free(pw_cfi_table *table)
{
    if (table) munmap(table, table->mapped);
}

bool
pw_cfi_find(const uint8_t *header, size_t size, uintptr_t *eh_frame)
{
    pw_cfi_bytes e = {.at = header, .end = header + size};
    if (pw_bytes_u8(&e) != 1) return false; /* version */
    uint8_t encoding = pw_bytes_u8(&e);
    pw_bytes_u16(&e); /* encodings of the header's own table */
    *eh_frame = pw_bytes_pointer(&e, encoding, (uintptr_t)e.at);
    return !e.bad && encoding != 0xff;
}

#else
bool pw_cfi_find(const uint8_t *header, size_t size, uintptr_t *eh_frame) { return false; }
pw_cfi_table *pw_cfi_parse(const pw_cfi_section *section) { return NULL; }
void pw_cfi_free(pw_cfi_table *table) {}
#endif

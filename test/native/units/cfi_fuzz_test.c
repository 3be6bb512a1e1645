/* Damaged tables and hostile stacks: the .eh_frame of the C library with bytes changed, and stacks of random words.
 * Nothing may be read that is not mapped.
 *
 * sources: cfi_*.c rule_walk.c native_walk.c walk_again.c ruleless_code.c interpreter.c stack_bounds.c raw_syscall.c */
#include "unit.h"
#include "native/cfi_parse.h"
#include "native/native_walk.h"
#include <link.h>
#include <sys/mman.h>

enum { MOST = 24 << 10, STACK = 16 << 10, ROUNDS = 4000, WALKS = 4 };

static struct {
    uintptr_t address, from, to; /* of the C library's .eh_frame; of its code */
    size_t size;
} real;

static int
visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (!strstr(info->dlpi_name, "libc.so")) return 0;
    uintptr_t header = 0, end = 0;
    real.from = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_GNU_EH_FRAME) header = at;
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        if (at < real.from) real.from = at;
        if (at + p->p_memsz > real.to) real.to = at + p->p_memsz;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && header >= at && header < at + p->p_filesz) end = at + p->p_filesz;
    }
    CHECK(header && pw_cfi_find((const uint8_t *)header, end - header, &real.address));
    real.size = end - real.address;
    return 1;
}

static uint32_t below(uint32_t n) { return unit_random(n); }

/* A piece of the section in a block of its own, so that AddressSanitizer knows its end. */
static uint8_t *
piece(size_t size)
{
    if (!real.address) dl_iterate_phdr(visit, NULL);
    CHECK(real.size > size);
    uint8_t *copy = malloc(size);
    memcpy(copy, (const void *)real.address, size);
    return copy;
}

static pw_cfi_table *
parse(const uint8_t *bytes, size_t size)
{
    return pw_cfi_parse(&(pw_cfi_section){.bytes = bytes, .size = size, .address = real.address, .from = real.from,
                                          .to = real.to});
}

static void
damage(uint8_t *bytes, size_t size)
{
    static const uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x0b, 0x0f, 0x10, 0x16};
    for (uint32_t n = 1 + below(12); n > 0; n--) {
        uint8_t *at = bytes + below((uint32_t)size);
        switch (below(3)) {
          case 0: *at ^= (uint8_t)(1 << below(8)); break;
          case 1: *at = nasty[below(sizeof nasty)]; break;
          default: *at = (uint8_t)below(256);
        }
    }
}

/* What a handler indexes with must be inside the table. */
static void
check_table(const pw_cfi_table *t)
{
    for (uint32_t i = 0; i < t->functions; i++) {
        CHECK(t->function[i].first_row <= t->function[i + 1].first_row);
        CHECK(i == 0 || t->function[i - 1].start < t->function[i].start);
    }
    EQUAL(t->rows, t->function[t->functions].first_row);
    for (uint32_t i = 0; i < t->rows; i++) CHECK(t->row[i].rule < t->rules);
    for (uint32_t i = 0; i < t->rules; i++) {
        CHECK(t->rule[i].cfa_register < PW_REGISTERS);
        if (t->rule[i].kind == PW_CFI_RARE) CHECK(t->rule[i].cfa_offset >= 0 && (uint32_t)t->rule[i].cfa_offset < t->rares);
    }
}

/* ---- stacks ---- */

static uint8_t *
guarded_stack(void)
{
    uint8_t *memory = mmap(NULL, STACK + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(mprotect(memory + 4096, STACK, PROT_READ | PROT_WRITE) == 0);
    return memory + 4096;
}

/* An address of the code, of the stack or its neighbourhood, or anything. */
static uintptr_t
hostile_word(const uint8_t *stack)
{
    switch (below(6)) {
      case 0: case 1: return real.from + below((uint32_t)(real.to - real.from));
      case 2: return (uintptr_t)stack - 256 + below(STACK + 512);
      case 3: return ((uintptr_t)stack + below(STACK)) & ~(uintptr_t)7;
      case 4: return below(4096);
      default: return (uintptr_t)unit_random_of(&unit_state);
    }
}

static uint32_t kept_frames; /* of all walks */

/* Walks once more after some words have changed, with and without the stack of the first walk. Both must find the same
 * frames. The last stack's root is said to have no caller: else hardly any hostile stack could be kept. */
static void
walk_again(const pw_walk *begin, uint8_t *stack, pw_native_frame *frames, uint32_t count)
{
    static pw_native_frame whole[512], fresh[512];
    uint32_t kept, no_kept, changed = below(3);
    pw_unwind_end end;
    pw_last_stack none = {0}, last = {frames, count, begin->map->generation};
    if (!count) return;
    pw_native_frame *root = &frames[count - 1];
    root->found = PW_FOUND_NONE;
    if (!root->sp) root->sp = count > 1 ? frames[count - 2].cfa : 0;
    pw_own_stack = (pw_stack_bounds){(uintptr_t)stack, (uintptr_t)stack + STACK, 0};
    for (uint32_t i = 0; i < changed; i++) ((uintptr_t *)stack)[below(STACK / 8)] = hostile_word(stack);
    pw_walk w = *begin;
    uint32_t all = pw_walk_all(&w, whole, 512, &none, &no_kept, &end);
    CHECK(no_kept == 0);
    w = *begin;
    uint32_t n = pw_walk_all(&w, fresh, 512, &last, &kept, &end);
    CHECK(kept <= count);
    kept_frames += kept;
    for (uint32_t i = 0; i < n + kept && i < 512; i++) {
        const pw_native_frame *f = i < n ? &fresh[i] : &frames[count - kept + (i - n)];
        CHECK(i < all && f->pc == whole[i].pc && f->function == whole[i].function);
        if (i + 1 < n + kept) CHECK(f->cfa == whole[i].cfa);
    }
    pw_own_stack = (pw_stack_bounds){0, 0, 0};
}

static void
walk_hostile_stack(const pw_code_map *map, uint8_t *stack)
{
    static pw_native_frame frames[512];
    pw_unwind_end end = PW_UNWIND_LOST;
    pw_last_stack none = {0};
    uint32_t kept;
    pw_walk w = {.map = map, .interrupted = below(2), .words = {.page = 4096}};
    for (size_t i = 0; i < STACK / sizeof(uintptr_t); i++) ((uintptr_t *)stack)[i] = hostile_word(stack);
    for (int i = 0; i < PW_REGISTERS; i++) w.r[i] = hostile_word(stack);
    w.r[PW_PC] = real.from + below((uint32_t)(real.to - real.from));
    pw_walk begin = w;
    uint32_t count = pw_walk_all(&w, frames, 512, &none, &kept, &end);
    CHECK(count <= 512);
    for (uint32_t i = 0; i < count; i++) CHECK(frames[i].kind <= PW_NATIVE_UNKNOWN);
    walk_again(&begin, stack, frames, count);
}

static pw_code_map *
map_of(const pw_cfi_table *table)
{
    static uint64_t generation;
    pw_code_map *map = calloc(1, sizeof *map + sizeof(pw_code));
    map->count = 1;
    map->generation = ++generation;
    map->code[0] = (pw_code){.from = real.from, .to = real.to, .table = table, .object = 1};
    return map;
}

/* ---- tests ---- */

TEST(damaged_tables_and_hostile_stacks)
{
    uint8_t *stack = guarded_stack();
    uint32_t tables = 0;
    for (int round = 0; round < (unit_quick ? ROUNDS / 10 : ROUNDS); round++) {
        unit_note("round %d", round);
        size_t size = 64 + below(MOST);
        uint8_t *bytes = piece(size);
        damage(bytes, size);
        pw_cfi_table *table = parse(bytes, size);
        free(bytes);
        if (!table) continue;
        tables++;
        check_table(table);
        pw_code_map *map = map_of(table);
        for (int i = 0; i < WALKS; i++) walk_hostile_stack(map, stack);
        free(map);
        pw_cfi_free(table);
    }
    CHECK(tables > 100);
}

TEST(hostile_stacks_of_an_undamaged_table)
{
    pw_cfi_table *table = NULL;
    uint8_t *bytes = piece(MOST), *stack = guarded_stack();
    table = parse(bytes, MOST);
    CHECK(table && table->functions > 50);
    check_table(table);
    pw_code_map *map = map_of(table);
    for (int round = 0; round < (unit_quick ? 1000 : 20000); round++) {
        unit_note("round %d", round);
        walk_hostile_stack(map, stack);
    }
    CHECK(kept_frames > 100);
}

TEST(random_bytes)
{
    piece(64);
    for (int round = 0; round < (unit_quick ? 200 : 5000); round++) {
        size_t size = 1 + below(2000);
        uint8_t *bytes = malloc(size);
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)below(round % 2 ? 256 : 17);
        uintptr_t eh_frame;
        pw_cfi_find(bytes, size, &eh_frame);
        pw_cfi_table *table = parse(bytes, size);
        if (table) check_table(table);
        pw_cfi_free(table);
        free(bytes);
    }
}

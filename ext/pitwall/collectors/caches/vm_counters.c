#include "collectors/caches/vm_counters.h"
#include "tools/buffer.h"
#include "tools/readable.h"
#include "vm/vm_stat.h"
#include <link.h>
#include <stdlib.h>

enum { TURNS = 3, POINTED_BYTES = 128 };

pw_vm_counter pw_vm_counters[PW_VM_COUNTERS];

static VALUE misses; /* a Symbol; 0: this Ruby does not count them */

static const char *const names[PW_VM_COUNTERS][2] = {
    {"constant_cache_invalidations", "global_constant_state"}, {"class_serial"}, {"global_cvar_state"},
    {"next_shape_id"}};

uint64_t
pw_vm_counter_read(const pw_vm_counter *counter)
{
    if (!counter->name) return 0;
    if (counter->address) return pw_vm_counter_at(counter);
    return pw_vm_stat(counter->symbol);
}

bool pw_vm_misses_known(void) { return misses != 0; }

uint64_t pw_vm_misses(void) { return misses ? pw_vm_stat(misses) : 0; }

bool
pw_vm_counters_claim(uint64_t increase[PW_VM_COUNTERS])
{
    bool any = false;
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        increase[i] = 0;
        if (!pw_vm_counters[i].name) continue;
        uint64_t now = pw_vm_counter_read(&pw_vm_counters[i]), before = atomic_exchange(&pw_vm_counters[i].seen, now);
        if (now > before) increase[i] = now - before;
        any |= increase[i] != 0;
    }
    return any;
}

/* ---- where the counters are ---- */

/* Candidates: words of Ruby's data, or of memory that Ruby's data points to, that had the counter's value at each
 * turn. */
typedef struct { pw_buffer found[PW_VM_COUNTERS]; uint64_t values[PW_VM_COUNTERS]; bool pointed; } search;
typedef struct { const uint8_t *address; bool wide; } candidate;

static void
look_at(search *s, const uint8_t *address)
{
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        if (!pw_vm_counters[i].name) continue;
        if ((uintptr_t)address % 8 == 0 && *(const uint64_t *)address == s->values[i]) {
            pw_buffer_put(&s->found[i], &(candidate){address, true}, sizeof(candidate));
        }
        else if (*(const uint32_t *)address == s->values[i]) {
            pw_buffer_put(&s->found[i], &(candidate){address, false}, sizeof(candidate));
        }
    }
}

static void
look_behind(search *s, const uint8_t *word)
{
    uintptr_t to = *(const uintptr_t *)word;
    if (to % 8 || to < 4096 || to >> 47 || !pw_readable(to) || !pw_readable(to + POINTED_BYTES - 8)) return;
    for (int at = 0; at < POINTED_BYTES; at += 4) look_at(s, (const uint8_t *)to + at);
}

static int
look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    search *s = data;
    uintptr_t code = (uintptr_t)rb_gc_start;
    bool is_ruby = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && code >= from && code < from + p->p_memsz) is_ruby = true;
    }
    if (!is_ruby) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) continue;
        uintptr_t from = (info->dlpi_addr + p->p_vaddr + 7) & ~(uintptr_t)7;
        uintptr_t to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        for (uintptr_t at = from; at + 8 <= to; at += s->pointed ? 8 : 4) {
            if (s->pointed) look_behind(s, (const uint8_t *)at);
            else look_at(s, (const uint8_t *)at);
        }
    }
    return 1;
}

static void
read_all(uint64_t values[PW_VM_COUNTERS])
{
    for (int i = 0; i < PW_VM_COUNTERS; i++) values[i] = pw_vm_counter_read(&pw_vm_counters[i]);
}

/* Keeps the candidates that have changed as the counter did. */
static void
sift(search *s)
{
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        candidate *all = (candidate *)s->found[i].data;
        size_t n = s->found[i].size / sizeof(candidate), kept = 0;
        for (size_t at = 0; at < n; at++) {
            uint64_t now = all[at].wide ? *(const uint64_t *)all[at].address : *(const uint32_t *)all[at].address;
            if (now == s->values[i]) all[kept++] = all[at];
        }
        s->found[i].size = kept * sizeof(candidate);
    }
}

static void
find_addresses(VALUE helper, bool pointed)
{
    search s = {.pointed = pointed};
    ID bump = rb_intern("bump");
    int error = 0;
    read_all(s.values);
    dl_iterate_phdr(look_at_object, &s);
    for (int turn = 0; turn < TURNS && !error; turn++) {
        uint64_t before[PW_VM_COUNTERS];
        memcpy(before, s.values, sizeof before);
        rb_funcall(helper, bump, 0);
        read_all(s.values);
        for (int i = 0; i < PW_VM_COUNTERS; i++) {
            if (s.values[i] == before[i]) s.found[i].size = 0; /* a counter that stands still identifies no address */
        }
        sift(&s);
    }
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        const candidate *first = (const candidate *)s.found[i].data;
        if (s.found[i].size == sizeof(candidate)) {
            pw_vm_counters[i].wide = first->wide;
            pw_vm_counters[i].address = first->address;
        }
    }
    pw_buffers_free(s.found, PW_VM_COUNTERS);
}

void
pw_vm_counters_find(VALUE helper)
{
    static bool found;
    if (found) return;
    if (!pw_vm_stat_find()) rb_raise(rb_eRuntimeError, "RubyVM.stat is not Ruby's own");
    VALUE all = pw_vm_stat_all(), name = ID2SYM(rb_intern("constant_cache_misses"));
    if (!NIL_P(rb_hash_lookup(all, name))) misses = name;
    for (int i = 0; i < PW_VM_COUNTERS; i++) {
        for (int n = 0; n < 2 && names[i][n] && !pw_vm_counters[i].name; n++) {
            VALUE symbol = ID2SYM(rb_intern(names[i][n]));
            if (NIL_P(rb_hash_lookup(all, symbol))) continue;
            pw_vm_counters[i].name = names[i][n];
            pw_vm_counters[i].symbol = symbol;
        }
    }
    find_addresses(helper, false);
    bool missing = false;
    for (int i = 0; i < PW_VM_COUNTERS; i++) missing |= pw_vm_counters[i].name && !pw_vm_counters[i].address;
    if (missing) {
        const void *known[PW_VM_COUNTERS];
        bool wide[PW_VM_COUNTERS];
        for (int i = 0; i < PW_VM_COUNTERS; i++) known[i] = pw_vm_counters[i].address, wide[i] = pw_vm_counters[i].wide;
        find_addresses(helper, true);
        for (int i = 0; i < PW_VM_COUNTERS; i++) {
            if (known[i]) pw_vm_counters[i].address = known[i], pw_vm_counters[i].wide = wide[i];
        }
    }
    found = true;
}

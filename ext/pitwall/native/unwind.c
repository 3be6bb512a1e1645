#include "native/registers.h"
#include "native/unwind.h"

#if PW_UNWINDS

#include "native/cfi_parse.h"
#include "native/native_walk.h"
#include "native/objects.h"
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>

enum { PATIENCE = 10000, MOST_RETIRED = 256 };

static struct {
    _Atomic(pw_code_map *) map;
    _Atomic uint32_t under_way;        /* handlers that may be reading a map */
    _Atomic bool taken;                /* one thread at a time changes what follows */
    pw_code_map *retired[MOST_RETIRED];
    pw_cfi_table *retired_tables[MOST_RETIRED];
    uint32_t retired_count, retired_table_count;
    uint64_t generation;
    bool held_for_fork;                /* `taken` is, by the thread that forks */
    uintptr_t page, ruby;              /* ruby: an address in Ruby's code */
    const char *refusal;
} unwinder;

/* ---- what handlers read ---- */

/* Frees what no handler can be reading any more: it is in no published map. */
static void
free_retired(void)
{
    if (atomic_load(&unwinder.under_way)) return;
    for (uint32_t i = 0; i < unwinder.retired_count; i++) munmap(unwinder.retired[i], unwinder.retired[i]->mapped);
    for (uint32_t i = 0; i < unwinder.retired_table_count; i++) pw_cfi_free(unwinder.retired_tables[i]);
    unwinder.retired_count = unwinder.retired_table_count = 0;
}

static void
publish(pw_code_map *map)
{
    pw_code_map *old = atomic_exchange(&unwinder.map, map);
    if (old && unwinder.retired_count < MOST_RETIRED) unwinder.retired[unwinder.retired_count++] = old;
}

/* Objects that are there for as long as the process is: the program, Ruby's library, the C library. */
static bool
stays(const pw_object *o)
{
    uintptr_t program = (uintptr_t)getauxval(AT_ENTRY), c_library = (uintptr_t)&abort, ruby = unwinder.ruby;
    return (program >= o->from && program < o->to) || (c_library >= o->from && c_library < o->to)
           || (ruby >= o->from && ruby < o->to);
}

static void
sort(pw_code *code, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        pw_code moved = code[i];
        uint32_t at = i;
        for (; at > 0 && code[at - 1].from > moved.from; at--) code[at] = code[at - 1];
        code[at] = moved;
    }
}

static bool
publish_loaded(void)
{
    uint32_t objects = pw_objects_count();
    size_t size = sizeof(pw_code_map) + objects * sizeof(pw_code);
    pw_code_map *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    map->mapped = size;
    map->generation = ++unwinder.generation;
    for (uint32_t i = 0; i < objects; i++) {
        pw_object *o = pw_object_numbered(i);
        if (o->unloaded || o->from == o->to) continue;
        map->code[map->count++] = (pw_code){o->from, o->to, o->cfi, (uint16_t)(i + 1), stays(o)};
    }
    sort(map->code, map->count);
    publish(map);
    for (uint32_t i = 0; i < objects && unwinder.retired_table_count < MOST_RETIRED; i++) {
        pw_object *o = pw_object_numbered(i);
        if (!o->unloaded || !o->cfi) continue;
        unwinder.retired_tables[unwinder.retired_table_count++] = o->cfi;
        o->cfi = NULL;
    }
    return true;
}

/* ---- objects ---- */

/* The loaded part that has the address, readable up to `to`. */
static bool
part_with(const struct dl_phdr_info *info, uintptr_t address, uintptr_t *to)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_R) || address - info->dlpi_addr - p->p_vaddr >= p->p_filesz) continue;
        *to = info->dlpi_addr + p->p_vaddr + p->p_filesz;
        return true;
    }
    return false;
}

static void
read_rules(pw_object *o, const void *headers)
{
    const struct dl_phdr_info *info = headers;
    if (o->cfi) return;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_GNU_EH_FRAME) continue;
        uintptr_t header = info->dlpi_addr + p->p_vaddr, to, eh_frame;
        if (!part_with(info, header, &to)) continue;
        if (!pw_cfi_find((const uint8_t *)header, to - header, &eh_frame)) continue;
        if (!part_with(info, eh_frame, &to)) continue;
        o->cfi = pw_cfi_parse(&(pw_cfi_section){.bytes = (const uint8_t *)eh_frame, .size = to - eh_frame,
                                                .address = eh_frame, .from = o->from, .to = o->to});
        return;
    }
}

/* ---- from outside ---- */

static bool take(void) { return !atomic_exchange(&unwinder.taken, true); }
static void leave(void) { atomic_store(&unwinder.taken, false); }

static void
learn_interpreter(void)
{
    static pw_native_frame frames[512];
    pw_last_stack none = {0};
    uint32_t kept;
    pw_unwind_end end;
    const pw_object *ruby = pw_object_at(unwinder.ruby);
    if (!ruby || !ruby->cfi) return;
    uint32_t count = pw_unwind(NULL, frames, sizeof frames / sizeof frames[0], &none, &kept, &end);
    pw_interpreter_learn(ruby->cfi, frames, count);
}

bool
pw_unwind_prepare(uintptr_t ruby)
{
    while (!take()) sched_yield();
    unwinder.ruby = ruby;
    unwinder.page = (uintptr_t)sysconf(_SC_PAGESIZE);
    bool always = !atomic_load(&unwinder.map);
    if (pw_objects_refresh(always, read_rules) || always) publish_loaded();
    free_retired();
    leave();
    if (!atomic_load(&unwinder.map)) {
        unwinder.refusal = "there is no memory for the tables of native frames";
        return false;
    }
    unwinder.refusal = NULL;
    learn_interpreter();
    return true;
}

const char *pw_unwind_refusal(void) { return unwinder.refusal; }

void
pw_unwind_refresh(void)
{
    if (!atomic_load(&unwinder.map) || !take()) return;
    if (atomic_load(&unwinder.map)) {
        if (pw_objects_refresh(false, read_rules)) publish_loaded();
        free_retired();
    }
    leave();
}

void
pw_unwind_release(void)
{
    while (!take()) sched_yield();
    publish(NULL);
    for (uint32_t i = 0; i < PATIENCE && atomic_load(&unwinder.under_way); i++) sched_yield();
    if (!atomic_load(&unwinder.under_way)) {
        free_retired();
        for (uint32_t i = 0; i < pw_objects_count(); i++) {
            pw_cfi_free(pw_object_numbered(i)->cfi);
            pw_object_numbered(i)->cfi = NULL;
        }
    }
    leave();
}

void
pw_unwind_before_fork(void)
{
    enum { MOST_PAUSES = 10000 };
    const struct timespec pause = {.tv_nsec = 100000};
    unwinder.held_for_fork = take();
    for (int i = 0; !unwinder.held_for_fork && i < MOST_PAUSES; i++) {
        nanosleep(&pause, NULL);
        unwinder.held_for_fork = take();
    }
}

void
pw_unwind_in_parent(void)
{
    if (unwinder.held_for_fork) leave();
}

void
pw_unwind_child(void)
{
    pw_objects_child();
    leave();
    atomic_store(&unwinder.under_way, 0);
}

__attribute__((noinline)) uint32_t
pw_unwind(const void *ucontext, pw_native_frame *frames, uint32_t room, pw_last_stack *last, uint32_t *kept,
          pw_unwind_end *end)
{
    pw_walk w;
    uint32_t count = 0;
    *end = PW_UNWIND_LOST;
    *kept = 0;
    atomic_fetch_add(&unwinder.under_way, 1);
    w.map = atomic_load(&unwinder.map);
    if (w.map) {
        w.code = NULL;
        w.words = (pw_stack_words){.page = unwinder.page};
        w.interrupted = true;
        w.fp_at = 0;
        if (ucontext) pw_registers_of(ucontext, w.r);
        else {
            pw_native_frame here;
            PW_REGISTERS_HERE(w.r);
            if (pw_walk_step(&w, &here) != PW_WALK_ON) room = 0;
        }
        count = pw_walk_all(&w, frames, room, last, kept, end);
        last->generation = w.map->generation;
    }
    atomic_fetch_sub(&unwinder.under_way, 1);
    return count;
}

#else

bool pw_unwind_prepare(uintptr_t ruby) { return false; }
const char *pw_unwind_refusal(void) { return "native frames are read on Linux only, on x86-64 and aarch64"; }
void pw_unwind_refresh(void) {}
void pw_unwind_release(void) {}
void pw_unwind_before_fork(void) {}
void pw_unwind_in_parent(void) {}
void pw_unwind_child(void) {}

uint32_t
pw_unwind(const void *ucontext, pw_native_frame *frames, uint32_t room, pw_last_stack *last, uint32_t *kept,
          pw_unwind_end *end)
{
    *end = PW_UNWIND_LOST;
    *kept = 0;
    return 0;
}

#endif

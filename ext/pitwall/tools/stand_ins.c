#include "tools/stand_ins.h"

#if PW_STAND_INS

#include "tools/elf_object.h"
#include <ruby/ruby.h>
#include <ruby/thread.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#undef snprintf

#if defined(__x86_64__)
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_ADDRESS = R_X86_64_GLOB_DAT };
#else
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_ADDRESS = R_AARCH64_GLOB_DAT };
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct { pw_elf_object elf; bool opened; } object;

/* ---- memory that is not writable ---- */

static struct {
    struct { uintptr_t from, to; } *closed;
    size_t closed_count;
    /* closed_known: false if /proc could not be read (for lack of a descriptor), or if there was no memory */
    bool closed_listed, closed_known;
} closed_parts;

static void
list_closed(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    size_t room = 0;
    closed_parts.closed_count = 0;
    closed_parts.closed_listed = true;
    closed_parts.closed_known = maps != NULL;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char write;
        if (sscanf(line, "%lx-%lx %*c%c", &from, &to, &write) != 3 || write == 'w') continue;
        if (closed_parts.closed_count == room) {
            room = room ? room * 2 : 512;
            void *larger = realloc(closed_parts.closed, room * sizeof *closed_parts.closed);
            if (!larger) {
                closed_parts.closed_known = false;
                break;
            }
            closed_parts.closed = larger;
        }
        closed_parts.closed[closed_parts.closed_count].from = from;
        closed_parts.closed[closed_parts.closed_count++].to = to;
    }
    if (maps) fclose(maps);
}

static void
forget_closed(void)
{
    free(closed_parts.closed);
    closed_parts.closed = NULL;
    closed_parts.closed_count = 0;
    closed_parts.closed_listed = closed_parts.closed_known = false;
}

static bool
is_closed(uintptr_t address)
{
    for (size_t i = 0; i < closed_parts.closed_count; i++) {
        if (address >= closed_parts.closed[i].from && address < closed_parts.closed[i].to) return true;
    }
    return false;
}

/* ---- one object ---- */

typedef struct {
    pw_stand_ins *list;
    bool install;
    /* skip: objects to skip; seen: objects visited; both in the order in which the objects were loaded */
    size_t skip, seen;
    bool wants_closed;  /* a slot must be made writable, and the closed parts are not listed yet */
    unsigned long long loaded, unloaded;
} pass;

/* Makes a slot writable. A slot that the loader closes, but that is still writable, may belong to an object that
 * another thread is loading. That thread may close the slot at any moment, so nothing is installed there. Nothing is
 * installed without the list of closed parts, either. A slot that holds a function of ours was closed when it got
 * the function, so such a slot is opened without the list, too. */
static bool
open_slot(pass *r, object *o, uintptr_t slot)
{
    if (slot < o->elf.from || slot >= o->elf.to || o->opened) return true;
    if (!closed_parts.closed_listed) {
        r->wants_closed = true;
        return false;
    }
    if (closed_parts.closed_known ? !is_closed(slot) : r->install) return !r->install;
    o->opened = mprotect((void *)o->elf.from, o->elf.to - o->elf.from, PROT_READ | PROT_WRITE) == 0;
    return o->opened;
}

/* The entry that belongs into a slot that holds `value`; NULL: none. A slot that the loader fills at the first call
 * holds an address in its own object until then. */
static const pw_stand_in *
wanted(const struct dl_phdr_info *info, const pass *r, const pw_elf_object *o, const Elf64_Rela *slot,
       const void *value, bool of_ruby)
{
    const pw_stand_ins *list = r->list;
    for (int n = 0; n < list->count; n++) {
        const pw_stand_in *e = &list->entries[n];
        if (e->original && value == e->original && (e->of_ruby || !of_ruby)) return e;
    }
    const Elf64_Sym *symbol = &o->symbols[ELF64_R_SYM(slot->r_info)];
    if (ELF64_R_TYPE(slot->r_info) != SLOT_OF_CALL || symbol->st_shndx != SHN_UNDEF || !pw_elf_covers(info, value)) {
        return NULL;
    }
    const char *name = o->names + symbol->st_name;
    for (int n = 0; n < list->count; n++) {
        const pw_stand_in *e = &list->entries[n];
        if (e->original && strcmp(name, e->name) == 0) return e->unbound && (e->of_ruby || !of_ruby) ? e : NULL;
    }
    return NULL;
}

static const pw_stand_in *
one_of_ours(const pw_stand_ins *list, const void *value)
{
    for (int n = 0; n < list->count; n++) {
        if (value == list->entries[n].ours) return &list->entries[n];
    }
    return NULL;
}

static void
change(const struct dl_phdr_info *info, pass *r, object *o, int table, bool of_ruby)
{
    for (size_t i = 0; o->elf.tables[table] && i < o->elf.sizes[table] / sizeof(Elf64_Rela); i++) {
        const Elf64_Rela *place = &o->elf.tables[table][i];
        uint32_t type = ELF64_R_TYPE(place->r_info);
        if (type != SLOT_OF_CALL && type != SLOT_OF_ADDRESS) continue;
        void *_Atomic *slot = (void *_Atomic *)(o->elf.base + place->r_offset);
        void *value = atomic_load(slot);
        const pw_stand_in *e = r->install ? wanted(info, r, &o->elf, place, value, of_ruby) : one_of_ours(r->list,
            value);
        if (e && open_slot(r, o, (uintptr_t)slot)) {
            atomic_compare_exchange_strong(slot, &value, r->install ? e->ours : e->original);
        }
    }
}

static bool
has_an_original(const struct dl_phdr_info *info, const pw_stand_ins *list)
{
    for (int n = 0; n < list->count; n++) {
        if (list->entries[n].original && pw_elf_covers(info, list->entries[n].original)) return true;
    }
    return false;
}

static int
visit(struct dl_phdr_info *info, size_t size, void *data)
{
    pass *r = data;
    r->loaded = info->dlpi_adds;
    if (r->seen == 0 || r->unloaded != info->dlpi_subs) {
        r->unloaded = info->dlpi_subs;
        if (r->unloaded != r->list->unloaded) r->skip = 0; /* after an unload the order is not reliable */
    }
    if (r->seen++ < r->skip) return 0;
    /* Skips Pitwall's own object, because its calls are not the program's. Skips objects that contain an original:
     * the C library's calls of its own functions are left alone. */
    if (pw_elf_covers(info, (const void *)pw_stand_ins_install) || has_an_original(info, r->list)) return 0;
    object o = {.opened = false};
    if (!pw_elf_read(info, &o.elf)) return 0;
    bool of_ruby = pw_elf_covers(info, (const void *)rb_thread_call_without_gvl);
    for (int i = 0; i < 2; i++) change(info, r, &o, i, of_ruby);
    if (o.opened) mprotect((void *)o.elf.from, o.elf.to - o.elf.from, PROT_READ);
    return 0;
}

/* ---- all objects ---- */

static void
make_pass(pw_stand_ins *list, bool install, size_t skip)
{
    pass r = {.list = list, .install = install, .skip = skip};
    dl_iterate_phdr(visit, &r);
    if (r.wants_closed) {
        list_closed(); /* outside of dl_iterate_phdr, during which the loader is locked: list_closed allocates */
        r.seen = 0;
        r.skip = skip;
        dl_iterate_phdr(visit, &r);
        forget_closed();
    }
    list->installed = install;
    list->visited = r.seen;
    list->loaded = r.loaded;
    list->unloaded = r.unloaded;
}

void
pw_stand_ins_install(pw_stand_ins *list)
{
    pthread_mutex_lock(&lock);
    make_pass(list, true, 0);
    pthread_mutex_unlock(&lock);
}

void
pw_stand_ins_remove(pw_stand_ins *list)
{
    pthread_mutex_lock(&lock);
    if (list->installed) make_pass(list, false, 0);
    pthread_mutex_unlock(&lock);
}

static int
count_loaded(struct dl_phdr_info *info, size_t size, void *loaded)
{
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1;
}

/* An object that another thread is loading may be visited before the object's table is filled. Ruby loads one object
 * at a time. */
void
pw_stand_ins_cover_new(pw_stand_ins *list)
{
    unsigned long long loaded = 0;
    dl_iterate_phdr(count_loaded, &loaded);
    pthread_mutex_lock(&lock);
    if (list->installed && list->loaded != loaded) make_pass(list, true, list->visited);
    pthread_mutex_unlock(&lock);
}

void
pw_stand_ins_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    forget_closed();
}

#else

void pw_stand_ins_install(pw_stand_ins *list) {}
void pw_stand_ins_cover_new(pw_stand_ins *list) {}
void pw_stand_ins_remove(pw_stand_ins *list) {}
void pw_stand_ins_in_child(void) {}

#endif

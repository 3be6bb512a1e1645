#include "native/objects.h"

#ifdef __linux__

#include "native/cfi_bytes.h"
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Kept without malloc: it is filled while the loader is locked, and another thread may hold malloc's lock and wait for
 * the loader's. */
static struct {
    pw_object list[PW_OBJECTS_MOST];
    bool there[PW_OBJECTS_MOST];   /* found in the loader's list just now */
    _Atomic uint32_t count;
    _Atomic bool taken;
    bool looked, changed, always;
    unsigned long long adds, subs; /* the loader's own counts of loads and unloads */
    char paths[1 << 20];
    size_t paths_size;
    void (*seen)(pw_object *object, const void *headers);
} objects;

/* ---- one object ---- */

static void
note_build_id(pw_object *o, const uint8_t *notes, size_t size)
{
    pw_cfi_bytes b = {.at = notes, .end = notes + size};
    while (pw_bytes_left(&b) >= 12) {
        uint64_t name_size = pw_bytes_u32(&b), value_size = pw_bytes_u32(&b);
        uint32_t type = pw_bytes_u32(&b);
        const uint8_t *name = pw_bytes_skip(&b, (name_size + 3) & ~3ull);
        const uint8_t *value = pw_bytes_skip(&b, (value_size + 3) & ~3ull);
        if (!name || !value) return;
        if (type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name, "GNU", 4) != 0) continue;
        if (value_size > PW_BUILD_ID_MOST) return;
        memcpy(o->build_id, value, value_size);
        o->build_id_size = (uint8_t)value_size;
        return;
    }
}

static uint64_t
print_of(uint64_t hash, const void *memory, size_t size)
{
    const uint8_t *bytes = memory;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

/* Whether that piece of the object is in memory, and can be read. */
static bool
is_readable(const struct dl_phdr_info *info, const ElfW(Phdr) *piece)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_R) && piece->p_memsz <= p->p_filesz && piece->p_vaddr >= p->p_vaddr
            && piece->p_vaddr - p->p_vaddr <= p->p_filesz - piece->p_memsz) return true;
    }
    return false;
}

static void
describe(const struct dl_phdr_info *info, pw_object *o)
{
    *o = (pw_object){.bias = info->dlpi_addr, .from = UINTPTR_MAX, .path = ""};
    o->print = print_of(14695981039346656037u, info->dlpi_phdr, info->dlpi_phnum * sizeof *info->dlpi_phdr);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = o->bias + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            if (from < o->from) o->from = from;
            if (from + p->p_memsz > o->to) o->to = from + p->p_memsz;
        }
        else if (p->p_type == PT_NOTE && !o->build_id_size && is_readable(info, p)) {
            note_build_id(o, (const uint8_t *)from, p->p_memsz);
        }
    }
    o->print = print_of(o->print, o->build_id, o->build_id_size);
    o->print = print_of(o->print, info->dlpi_name, strlen(info->dlpi_name));
    if (o->from > o->to) o->from = o->to = 0;
}

/* Writes the object's path; "" where the loader knows none. */
static void
path_of(const struct dl_phdr_info *info, const pw_object *o, char path[PATH_MAX])
{
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    ssize_t size = 0;
    path[0] = '\0';
    if ((uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR)) {
        size = readlink("/proc/self/exe", path, PATH_MAX - 1);
        if (size >= 0) path[size] = '\0';
    }
    else if (vdso && vdso >= o->bias && vdso < o->to && o->to - vdso < 1 << 20) strcpy(path, "[vdso]");
    else if (name[0] == '/') snprintf(path, PATH_MAX, "%s", name);
    else if (name[0] && getcwd(path, PATH_MAX)) {
        size_t there = strlen(path);
        snprintf(path + there, PATH_MAX - there, "/%s", name);
    }
}

/* ---- the list ---- */

static const char *
kept(const char *path)
{
    size_t size = strlen(path) + 1;
    if (size > sizeof objects.paths - objects.paths_size) return "";
    char *copy = memcpy(objects.paths + objects.paths_size, path, size);
    objects.paths_size += size;
    return copy;
}

static bool
is_same(const pw_object *a, const pw_object *b)
{
    return a->print == b->print && a->bias == b->bias && a->from == b->from && a->to == b->to;
}

static int
visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        if (!objects.always && objects.looked && objects.adds == info->dlpi_adds && objects.subs == info->dlpi_subs) return 1;
        if (!objects.changed) {
            objects.adds = info->dlpi_adds;
            objects.subs = info->dlpi_subs;
            objects.looked = false;
        }
    }
    objects.changed = true;
    pw_object seen;
    describe(info, &seen);
    uint32_t count = atomic_load(&objects.count);
    for (uint32_t i = 0; i < count; i++) {
        if (objects.there[i] || !is_same(&objects.list[i], &seen)) continue;
        objects.there[i] = true;
        objects.list[i].unloaded = false; /* it may have been, and is loaded again */
        objects.seen(&objects.list[i], info);
        return 0;
    }
    if (count == PW_OBJECTS_MOST) return 0;
    char path[PATH_MAX];
    path_of(info, &seen, path);
    seen.number = count;
    seen.path = kept(path);
    objects.list[count] = seen;
    objects.there[count] = true;
    objects.seen(&objects.list[count], info);
    atomic_store(&objects.count, count + 1);
    return 0;
}

bool
pw_objects_refresh(bool always, void (*seen)(pw_object *object, const void *headers))
{
    if (atomic_exchange(&objects.taken, true)) return false;
    memset(objects.there, 0, sizeof objects.there);
    objects.always = always;
    objects.seen = seen;
    objects.changed = false;
    dl_iterate_phdr(visit, NULL);
    bool changed = objects.changed;
    objects.looked = true;
    for (uint32_t i = 0; changed && i < atomic_load(&objects.count); i++) {
        if (!objects.there[i]) objects.list[i].unloaded = true;
    }
    atomic_store(&objects.taken, false);
    return changed;
}

void pw_objects_child(void) { atomic_store(&objects.taken, false); }
uint32_t pw_objects_count(void) { return atomic_load(&objects.count); }
pw_object *pw_object_numbered(uint32_t number) { return &objects.list[number]; }

const pw_object *
pw_object_at(uintptr_t address)
{
    const pw_object *gone = NULL;
    for (uint32_t i = pw_objects_count(); i-- > 0;) {
        const pw_object *o = &objects.list[i];
        if (address < o->from || address >= o->to) continue;
        if (!o->unloaded) return o;
        if (!gone) gone = o;
    }
    return gone;
}

#else
bool pw_objects_refresh(bool always, void (*seen)(pw_object *object, const void *headers)) { return false; }
void pw_objects_child(void) {}
uint32_t pw_objects_count(void) { return 0; }
pw_object *pw_object_numbered(uint32_t number) { return NULL; }
const pw_object *pw_object_at(uintptr_t address) { return NULL; }
#endif

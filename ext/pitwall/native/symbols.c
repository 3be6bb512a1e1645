#include "native/symbols.h"
#include "native/elf_file.h"
#include "native/objects.h"
#include "native/interpreter.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#undef snprintf /* Ruby's replacement may allocate objects, and the drain has no GVL */

/* A symbol takes 16 bytes, all symbols together 16 MB at most. libruby and libc export 5,000; their debug files have
 * 30,000. Functions of an object that has more symbols than are left are named by their address in the object. */
enum { MOST_SYMBOLS = 1 << 20 };

#define DEBUG_FOLDER "/usr/lib/debug"

typedef struct known_object {
    struct known_object *next;
    pw_named_object named;
    const pw_object *loaded;
    const char *path;              /* of it */
    char build_id[PW_BUILD_ID_HEX];
    pw_elf_symbols symbols;
    char *file;                    /* path of the file that has the symbols; NULL: they were read from memory */
    struct stat stat;              /* of that file */
} known_object;

static struct {
    known_object *first, **last, *used; /* used: the object of the last question */
    known_object *unreported;           /* the next one of pw_symbols_next_object */
    uint32_t symbols;                   /* of all objects */
    char name[PW_SYMBOL_NAME_SIZE];
} state;

/* ---- where an object's symbols are ---- */

/* Takes the functions of a file's table, if the file has one. */
static bool
take_table(known_object *o, const pw_elf_file *file, const char *path, bool dynamic, uint8_t names_from)
{
    pw_elf_result result = pw_elf_symbols_of_file(file, dynamic, MOST_SYMBOLS - state.symbols, &o->symbols);
    if (result == PW_ELF_TOO_MANY) o->named.names_from = PW_NAMES_TOO_MANY;
    if (result != PW_ELF_READ) return false;
    o->file = strdup(path);
    o->stat = file->stat;
    o->named.names_from = names_from;
    if (o->file) return true;
    pw_elf_symbols_free(&o->symbols);
    o->named.names_from = PW_NAMES_NONE;
    return false;
}

/* The address of an object's ELF header. A program that is not position-independent is at bias 0. */
static uintptr_t
head_of(const pw_object *loaded)
{
    return loaded->bias ? loaded->bias : getauxval(AT_PHDR) - sizeof(Elf64_Ehdr);
}

static bool
is_file_of(const known_object *o, const pw_elf_file *file)
{
    if (o->build_id[0] || file->build_id[0]) return strcmp(o->build_id, file->build_id) == 0;
    return pw_elf_is_loaded(file, o->loaded->bias, head_of(o->loaded));
}

/* Takes the symbols of a debug file, if it is the object's. */
static bool
take_debug_file(known_object *o, const char *path)
{
    pw_elf_file file;
    if (!pw_elf_open(&file, path)) return false;
    bool taken = strcmp(o->build_id, file.build_id) == 0 && take_table(o, &file, path, false, PW_NAMES_DEBUG_FILE);
    pw_elf_close(&file);
    return taken;
}

/* A debug file is looked for by build id, and by the name that the object has for it. It must have the object's build
 * id: nothing else shows that it belongs to the object. */
static bool
find_debug_file(known_object *o, const char *link)
{
    char path[PATH_MAX];
    if (strlen(o->build_id) < 4) return false;
    snprintf(path, sizeof path, DEBUG_FOLDER "/.build-id/%.2s/%s.debug", o->build_id, o->build_id + 2);
    if (take_debug_file(o, path)) return true;
    const char *slash = strrchr(o->path, '/');
    if (!link[0] || !slash) return false;
    static const char *const forms[][2] = {{"", "/"}, {"", "/.debug/"}, {DEBUG_FOLDER, "/"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int n = snprintf(path, sizeof path, "%s%.*s%s%s", forms[i][0], (int)(slash - o->path), o->path, forms[i][1],
                         link);
        if (n > 0 && n < (int)sizeof path && take_debug_file(o, path)) return true;
    }
    return false;
}

/* All functions of the object first, those that it exports last. */
static void
find_symbols(known_object *o)
{
    pw_elf_file file;
    if (o->path[0] == '/' && pw_elf_open(&file, o->path)) {
        bool same = is_file_of(o, &file), found = same && take_table(o, &file, o->path, false, PW_NAMES_SYMTAB);
        found = found || find_debug_file(o, same ? file.debug_link : "") ||
                (same && take_table(o, &file, o->path, true, PW_NAMES_DYNSYM));
        pw_elf_close(&file);
        if (found) return;
    }
    else if (find_debug_file(o, "")) return;
    if (atomic_load(&o->loaded->unloaded)) return;
    pw_elf_result result = pw_elf_symbols_of_memory(o->loaded->bias, head_of(o->loaded), MOST_SYMBOLS - state.symbols,
                                                    &o->symbols);
    if (result == PW_ELF_READ) o->named.names_from = PW_NAMES_DYNSYM;
    else if (result == PW_ELF_TOO_MANY) o->named.names_from = PW_NAMES_TOO_MANY;
}

/* ---- objects ---- */

/* An object with its symbols. NULL: there is no memory. */
static known_object *
object_for(const pw_object *loaded)
{
    if (state.used && state.used->loaded == loaded) return state.used;
    for (known_object *o = state.first; o; o = o->next) {
        if (o->loaded == loaded) return state.used = o;
    }
    known_object *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->loaded = loaded;
    o->path = loaded->path;
    for (int i = 0; i < loaded->build_id_size; i++) pw_elf_put_hex(o->build_id + 2 * i, loaded->build_id[i]);
    o->named = (pw_named_object){.path = o->path, .build_id = o->build_id, .names_from = PW_NAMES_NONE};
    find_symbols(o);
    state.symbols += o->symbols.count;
    if (!state.first) state.last = &state.first;
    *state.last = o;
    state.last = &o->next;
    if (!state.unreported) state.unreported = o;
    return state.used = o;
}

const pw_named_object *
pw_symbols_next_object(void)
{
    known_object *o = state.unreported;
    if (!o) return NULL;
    state.unreported = o->next;
    return &o->named;
}

void
pw_symbols_release(void)
{
    for (known_object *o = state.first, *next; o; o = next) {
        next = o->next;
        pw_elf_symbols_free(&o->symbols);
        free(o->file);
        free(o);
    }
    memset(&state, 0, sizeof state);
}

void
pw_symbols_child(void)
{
    memset(&state, 0, sizeof state);
}

/* ---- names ---- */

/* The file is opened for each name. An open descriptor would be one that the program might close or inherit. */
static size_t
name_at(const known_object *o, uint64_t address)
{
    if (!o->symbols.count) return 0;
    if (!o->file) return pw_elf_name(&o->symbols, NULL, address, state.name);
    pw_elf_file file;
    if (!pw_elf_reopen(&file, o->file, &o->stat)) return 0;
    size_t length = pw_elf_name(&o->symbols, &file, address, state.name);
    pw_elf_close(&file);
    return length;
}

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void
pw_symbol_of(const pw_object *loaded, uintptr_t function, pw_symbol *found)
{
    known_object *o = loaded ? object_for(loaded) : NULL;
    found->object = o ? o->path : "";
    found->name = state.name;
    if (!o) {
        found->name_length = (size_t)snprintf(state.name, sizeof state.name, "(unknown code)");
        return;
    }
    uint64_t address = function - loaded->bias;
    found->name_length = name_at(o, address);
    if (found->name_length) return;
    /* The interpreter's loop is a local function, and packaged Rubies have names of exported functions only. */
    int n = pw_unwind_is_interpreter(function)
        ? snprintf(state.name, sizeof state.name, "vm_exec_core")
        : snprintf(state.name, sizeof state.name, "%.255s+0x%llx", base_name(o->path), (unsigned long long)address);
    found->name_length = (size_t)n;
}

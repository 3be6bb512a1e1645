/* Names of functions by their address, with a list of loaded objects that the test makes.
 *
 * sources: symbols.c elf_file.c */
#include "unit.h"
#include "elf_file.h"
#include "native/objects.h"
#include "native/interpreter.h"
#include "symbols.h"
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

/* ---- a list of objects in place of native/objects.c ---- */

static pw_object objects[4];
static char paths[4][4096];
static uint32_t object_count;
static uintptr_t interpreter;

static const pw_object *
object_at(uintptr_t address)
{
    for (uint32_t i = 0; i < object_count; i++) {
        if (address >= objects[i].from && address < objects[i].to) return &objects[i];
    }
    return NULL;
}

bool pw_unwind_is_interpreter(uintptr_t function) { return interpreter && function == interpreter; }

static int
add_loaded(struct dl_phdr_info *info, size_t size, void *part)
{
    bool wanted = *(const char *)part ? strstr(info->dlpi_name, part) != NULL : !info->dlpi_name[0];
    if (!wanted) return 0;
    pw_object *o = &objects[object_count];
    *o = (pw_object){.number = object_count, .bias = info->dlpi_addr, .path = paths[object_count]};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *at = &info->dlpi_phdr[i];
        if (at->p_type != PT_LOAD || !(at->p_flags & PF_X)) continue;
        o->from = info->dlpi_addr + at->p_vaddr;
        o->to = o->from + at->p_memsz;
    }
    snprintf(paths[object_count++], sizeof paths[0], "%s", info->dlpi_name);
    return 1;
}

/* part "": this program. */
static pw_object *
loaded(char *part)
{
    CHECK(dl_iterate_phdr(add_loaded, part));
    pw_object *o = &objects[object_count - 1];
    if (!part[0]) CHECK(readlink("/proc/self/exe", paths[o->number], sizeof paths[0] - 1) > 0);
    pw_elf_file file;
    CHECK(pw_elf_open(&file, o->path));
    o->build_id_size = (uint8_t)(strlen(file.build_id) / 2);
    for (int i = 0; i < o->build_id_size; i++) {
        unsigned byte;
        CHECK(sscanf(file.build_id + 2 * i, "%2x", &byte) == 1);
        o->build_id[i] = (uint8_t)byte;
    }
    pw_elf_close(&file);
    return o;
}

static void *
in_c_library(const char *name)
{
    void *function = dlsym(dlopen("libc.so.6", RTLD_NOW), name);
    CHECK(function);
    return function;
}

static pw_symbol
symbol_of(const void *function)
{
    pw_symbol found;
    pw_symbol_of(object_at((uintptr_t)function), (uintptr_t)function, &found);
    EQUAL(strlen(found.name), found.name_length);
    return found;
}

static char *
by_address(const pw_object *o, const void *function, const char *name)
{
    static char text[300];
    snprintf(text, sizeof text, "%s+0x%llx", name, (unsigned long long)((uintptr_t)function - o->bias));
    return text;
}

static __attribute__((noinline, used)) int local_function(int a) { return a + 1; }

/* All tests may run in one process, and tests change the objects that they have added. */
static void
forget(void)
{
    pw_symbols_release();
    object_count = 0;
    interpreter = 0;
}

/* ---- tests ---- */

TEST(local_and_exported_functions_have_names)
{
    pw_object *program = loaded(""), *library = loaded("libc.so");
    pw_symbol found = symbol_of((void *)local_function);
    EQUAL_TEXT("local_function", found.name);
    EQUAL_TEXT(program->path, found.object);
    found = symbol_of(in_c_library("getdents64"));
    EQUAL_TEXT("getdents64", found.name);
    EQUAL_TEXT(library->path, found.object);

    const pw_named_object *one = pw_symbols_next_object(), *two = pw_symbols_next_object();
    EQUAL_TEXT(program->path, one->path);
    EQUAL(PW_NAMES_SYMTAB, one->names_from);
    EQUAL(2 * program->build_id_size, strlen(one->build_id));
    EQUAL_TEXT(library->path, two->path);
    CHECK(two->names_from == PW_NAMES_DYNSYM || two->names_from == PW_NAMES_DEBUG_FILE);
    CHECK(!pw_symbols_next_object());
    symbol_of((void *)local_function);
    CHECK(!pw_symbols_next_object());
    pw_symbols_release();
    CHECK(!pw_symbols_next_object());
    forget();
}

TEST(an_address_in_no_object_is_unknown)
{
    pw_symbol found = symbol_of((void *)12345);
    EQUAL_TEXT("(unknown code)", found.name);
    EQUAL_TEXT("", found.object);
    CHECK(!pw_symbols_next_object());
    forget();
}

TEST(a_replaced_library_is_named_from_memory)
{
    pw_object *library = loaded("libc.so");
    library->build_id[0] ^= 1; /* the file has another one now */
    EQUAL_TEXT("getdents64", symbol_of(in_c_library("getdents64")).name);
    EQUAL(PW_NAMES_DYNSYM, pw_symbols_next_object()->names_from);
    forget();
}

TEST(a_replaced_program_has_no_names)
{
    pw_object *program = loaded("");
    program->build_id[0] ^= 1;
    EQUAL_TEXT(by_address(program, (void *)local_function, strrchr(program->path, '/') + 1),
               symbol_of((void *)local_function).name);
    forget();
}

TEST(a_deleted_library_is_named_from_memory)
{
    pw_object *library = loaded("libc.so");
    snprintf(paths[0], sizeof paths[0], "/nowhere/libc.so.6");
    EQUAL_TEXT("getdents64", symbol_of(in_c_library("getdents64")).name);
    pw_symbols_release();

    library->build_id_size = 0; /* no debug file is found */
    library->unloaded = true;   /* then its memory may be another object's */
    EQUAL_TEXT(by_address(library, in_c_library("getdents64"), "libc.so.6"),
               symbol_of(in_c_library("getdents64")).name);
    EQUAL(PW_NAMES_NONE, pw_symbols_next_object()->names_from);
    forget();
}

TEST(an_object_without_build_id_is_compared_with_its_file)
{
    pw_object *library = loaded("libc.so");
    pw_elf_file file;
    CHECK(pw_elf_open(&file, library->path));
    CHECK(pw_elf_is_loaded(&file, library->bias, library->bias));
    library->bias += 4096;
    CHECK(!pw_elf_is_loaded(&file, library->bias, library->bias));
    pw_elf_close(&file);
    forget();
}

TEST(the_interpreters_loop_is_named_where_no_symbol_is)
{
    pw_object *library = loaded("libc.so");
    snprintf(paths[0], sizeof paths[0], "/nowhere/libruby.so.3.1");
    library->build_id_size = 0;
    library->unloaded = true;
    interpreter = (uintptr_t)in_c_library("getdents64");
    EQUAL_TEXT("vm_exec_core", symbol_of((void *)interpreter).name);
    EQUAL_TEXT("/nowhere/libruby.so.3.1", symbol_of((void *)interpreter).object);
    forget();
}

TEST(functions_of_the_vdso_have_names)
{
    uintptr_t at = getauxval(AT_SYSINFO_EHDR);
    if (!at) return;
    objects[0] = (pw_object){.bias = at, .from = at, .to = at + 8192, .path = "[vdso]"};
    object_count = 1;
    pw_elf_symbols symbols;
    EQUAL(PW_ELF_READ, pw_elf_symbols_of_memory(at, at, 1000, &symbols));
    pw_symbol found = symbol_of((void *)(at + symbols.symbols[0].value));
    CHECK(!strchr(found.name, '+'));
    EQUAL_TEXT("[vdso]", found.object);
    pw_elf_symbols_free(&symbols);
    forget();
}

TEST(questions_after_a_release_are_answered_again)
{
    loaded("");
    for (int i = 0; i < 3; i++) {
        EQUAL_TEXT("local_function", symbol_of((void *)local_function).name);
        CHECK(pw_symbols_next_object());
        pw_symbols_release();
    }
    forget();
}

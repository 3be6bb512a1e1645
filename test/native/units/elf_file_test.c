/* Names of functions of real objects: this program, the C library, the vdso. Then the same objects, damaged.
 *
 * sources: elf_file.c */
#include "unit.h"
#include "elf_file.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum { MOST = 1 << 20 };

static __attribute__((noinline, used)) int local_function(int a) { return a + 1; }
__attribute__((noinline, used)) int exported_function(int a) { return a + 2; }
/* Two names of one function. */
int __exported_function(int a) __attribute__((alias("exported_function")));
static int __local_alias(int a) __attribute__((alias("exported_function"), used));

/* ---- helpers ---- */

typedef struct { const char *part; char path[4096]; uintptr_t bias, head; } loaded;

static int
find_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    loaded *l = data;
    if (!strstr(info->dlpi_name, l->part)) return 0;
    snprintf(l->path, sizeof l->path, "%s", info->dlpi_name);
    l->bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_offset == 0) l->head = info->dlpi_addr + part->p_vaddr;
    }
    return 1;
}

/* part "": this program, which is first in the list. */
static loaded
object_named(const char *part)
{
    loaded l = {.part = part};
    CHECK(dl_iterate_phdr(find_loaded, &l));
    if (!part[0]) snprintf(l.path, sizeof l.path, "/proc/self/exe");
    return l;
}

static loaded c_library(void) { return object_named("libc.so"); }

static size_t
name_of(const loaded *l, bool dynamic, const void *function, char name[PW_SYMBOL_NAME_SIZE])
{
    pw_elf_file file;
    pw_elf_symbols symbols;
    CHECK(pw_elf_open(&file, l->path));
    EQUAL(PW_ELF_READ, pw_elf_symbols_of_file(&file, dynamic, MOST, &symbols));
    size_t length = pw_elf_name(&symbols, &file, (uintptr_t)function - l->bias, name);
    pw_elf_symbols_free(&symbols);
    pw_elf_close(&file);
    return length;
}

/* ---- names ---- */

TEST(a_local_function_is_named_from_the_whole_table)
{
    char name[PW_SYMBOL_NAME_SIZE];
    loaded l = object_named("");
    EQUAL(strlen("local_function"), name_of(&l, false, (void *)local_function, name));
    EQUAL_TEXT("local_function", name);
}

TEST(an_address_within_a_function_belongs_to_it_and_the_gap_behind_it_to_nobody)
{
    char name[PW_SYMBOL_NAME_SIZE];
    pw_elf_symbol two[] = {{.value = 0x100, .size = 16, .name = 1}, {.value = 0x200, .size = 0, .name = 5}};
    pw_elf_symbols symbols = {.symbols = two, .count = 2, .names = "\0one\0two", .names_size = 9};
    EQUAL(3, pw_elf_name(&symbols, NULL, 0x100, name));
    EQUAL(3, pw_elf_name(&symbols, NULL, 0x10f, name));
    EQUAL_TEXT("one", name);
    EQUAL(0, pw_elf_name(&symbols, NULL, 0xff, name));
    EQUAL(0, pw_elf_name(&symbols, NULL, 0x110, name));
    EQUAL(3, pw_elf_name(&symbols, NULL, 0x200, name));
    EQUAL_TEXT("two", name);
    EQUAL(0, pw_elf_name(&symbols, NULL, 0x201, name));
    EQUAL(0, pw_elf_name(&symbols, NULL, UINT64_MAX, name));
}

TEST(a_symbol_around_another_one_holds_what_is_behind_that)
{
    char name[PW_SYMBOL_NAME_SIZE];
    pw_elf_symbol two[] = {{.value = 0x100, .size = 64, .name = 1}, {.value = 0x110, .size = 4, .name = 5}};
    pw_elf_symbols symbols = {.symbols = two, .count = 2, .names = "\0one\0two", .names_size = 9};
    pw_elf_name(&symbols, NULL, 0x112, name);
    EQUAL_TEXT("two", name);
    pw_elf_name(&symbols, NULL, 0x120, name);
    EQUAL_TEXT("one", name);
}

TEST(of_several_names_the_exported_one_without_underscores_is_taken)
{
    char name[PW_SYMBOL_NAME_SIZE];
    loaded l = object_named("");
    CHECK(name_of(&l, false, (void *)exported_function, name));
    EQUAL_TEXT("exported_function", name);

    pw_elf_symbol all[] = {{.value = 0x100, .size = 9, .name = 1}, {.value = 0x100, .size = 9, .name = 8},
                           {.value = 0x100, .size = 9, .name = 14}, {.value = 0x100, .size = 9, .rank = 1, .name = 20},
                           {.value = 0x100, .size = 9, .rank = 2, .name = 22}};
    pw_elf_symbols symbols = {.symbols = all, .count = 5, .names = "\0__pipe\0pipe2\0pipes\0p\0q", .names_size = 24};
    pw_elf_name(&symbols, NULL, 0x100, name);
    EQUAL_TEXT("pipe2", name);
}

TEST(exported_functions_of_the_c_library_are_named_as_the_loader_names_them)
{
    static const char *const names[] = {"write", "read", "malloc", "free", "qsort", "getdents64", "printf", "fwrite",
                                        "pthread_create", "strtol"};
    loaded l = c_library();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[PW_SYMBOL_NAME_SIZE];
        void *handle = dlopen(l.path, RTLD_NOLOAD | RTLD_NOW), *function = dlsym(handle, names[i]);
        unit_note("%s", names[i]);
        CHECK(name_of(&l, true, function, name));
        CHECK(dlsym(handle, name) == function);
    }
}

TEST(memory_gives_the_same_names_as_the_file)
{
    pw_elf_file file;
    pw_elf_symbols read, mapped;
    char from_file[PW_SYMBOL_NAME_SIZE], from_memory[PW_SYMBOL_NAME_SIZE];
    loaded l = c_library();
    CHECK(pw_elf_open(&file, l.path));
    CHECK(pw_elf_is_loaded(&file, l.bias, l.head));
    EQUAL(PW_ELF_READ, pw_elf_symbols_of_file(&file, true, MOST, &read));
    EQUAL(PW_ELF_READ, pw_elf_symbols_of_memory(l.bias, l.head, MOST, &mapped));
    EQUAL(read.count, mapped.count);
    CHECK(read.count > 1000);
    for (uint32_t i = 0; i < read.count; i++) {
        EQUAL(read.symbols[i].value, mapped.symbols[i].value);
        size_t length = pw_elf_name(&read, &file, read.symbols[i].value, from_file);
        EQUAL(length, pw_elf_name(&mapped, NULL, read.symbols[i].value, from_memory));
        EQUAL_TEXT(from_file, from_memory);
    }
    pw_elf_symbols_free(&read);
    pw_elf_symbols_free(&mapped);
    pw_elf_close(&file);
}

TEST(functions_of_the_vdso_have_names)
{
    uintptr_t at = getauxval(AT_SYSINFO_EHDR);
    pw_elf_symbols symbols;
    char name[PW_SYMBOL_NAME_SIZE];
    if (!at) return;
    EQUAL(PW_ELF_READ, pw_elf_symbols_of_memory(at, at, MOST, &symbols));
    bool clock = false;
    for (uint32_t i = 0; i < symbols.count; i++) {
        CHECK(pw_elf_name(&symbols, NULL, symbols.symbols[i].value, name));
        clock = clock || strstr(name, "clock_gettime");
    }
    CHECK(clock);
    pw_elf_symbols_free(&symbols);
}

TEST(a_table_of_more_symbols_than_allowed_is_refused)
{
    pw_elf_file file;
    pw_elf_symbols symbols;
    loaded l = c_library();
    CHECK(pw_elf_open(&file, l.path));
    EQUAL(PW_ELF_TOO_MANY, pw_elf_symbols_of_file(&file, true, 100, &symbols));
    CHECK(!symbols.symbols && !symbols.count);
    EQUAL(PW_ELF_TOO_MANY, pw_elf_symbols_of_memory(l.bias, l.head, 100, &symbols));
    CHECK(!symbols.symbols && !symbols.count);
    pw_elf_close(&file);
}

TEST(other_files_are_no_objects)
{
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/etc/passwd", "/", "/nowhere", ""};
    pw_elf_file file;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        unit_note("%s", paths[i]);
        CHECK(!pw_elf_open(&file, paths[i]));
        EQUAL(-1, file.fd);
    }
}

TEST(another_object_is_not_the_loaded_one)
{
    pw_elf_file file;
    loaded l = c_library();
    CHECK(pw_elf_open(&file, "/proc/self/exe"));
    CHECK(!pw_elf_is_loaded(&file, l.bias, l.head));
    CHECK(!pw_elf_is_loaded(&file, l.bias, 0));
    pw_elf_close(&file);
}

/* ---- damaged objects ---- */

typedef struct { uint8_t *bytes; size_t size; } image;

static image
image_of(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    image copy = {malloc((size_t)st.st_size), (size_t)st.st_size};
    for (size_t done = 0; done < copy.size;) {
        ssize_t n = pread(fd, copy.bytes + done, copy.size - done, (off_t)done);
        CHECK(n > 0);
        done += (size_t)n;
    }
    close(fd);
    return copy;
}

/* Asks for everything. The answers may be anything, but each is a text. */
static void
read_whole(const char *path)
{
    pw_elf_file file;
    char name[PW_SYMBOL_NAME_SIZE];
    if (!pw_elf_open(&file, path)) return;
    CHECK(strlen(file.build_id) < sizeof file.build_id && strlen(file.debug_link) < sizeof file.debug_link);
    pw_elf_is_loaded(&file, 0, (uintptr_t)&file);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        pw_elf_symbols symbols;
        if (pw_elf_symbols_of_file(&file, dynamic, MOST, &symbols) != PW_ELF_READ) continue;
        CHECK(symbols.count > 0);
        for (uint32_t i = 0; i < symbols.count; i += 1 + symbols.count / 64) {
            size_t length = pw_elf_name(&symbols, &file, symbols.symbols[i].value, name);
            CHECK(length < PW_SYMBOL_NAME_SIZE && (!length || strlen(name) == length));
        }
        pw_elf_symbols_free(&symbols);
    }
    pw_elf_close(&file);
}

static const uint64_t evil[] = {0, 1, 2, 3, 7, 8, 24, 64, 255, 4095, 65535, 0x7fffffff, 0xffffffff, 0x100000000,
                                0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffff8, 0xffffffffffffffff};

/* Overwrites one to eight places, most of them where an object keeps offsets and sizes. */
static void
damage(uint8_t *bytes, size_t size, size_t heads_at, size_t heads_size)
{
    for (uint32_t n = 1 + unit_random(8); n > 0; n--) {
        size_t from = unit_random(3) ? heads_at : 0, most = from ? heads_size : unit_random(2) ? 1024 : size;
        if (from + most > size) most = size - from;
        if (most < 8) return;
        size_t at = from + unit_random((uint32_t)most - 7), width = 1u << unit_random(4);
        uint64_t value = evil[unit_random(sizeof evil / sizeof *evil)];
        if (unit_random(3) == 0) value = unit_random(UINT32_MAX);
        memcpy(bytes + at, &value, width);
    }
}

static void
fuzz_file(const char *original, uint32_t rounds)
{
    char path[64];
    image good = image_of(original);
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)good.bytes;
    size_t heads_at = head->e_shoff, heads_size = good.size - heads_at;
    int fd = memfd_create("damaged", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    uint8_t *bad = malloc(good.size);
    for (uint32_t round = 0; round < unit_rounds(rounds); round++) {
        unit_note("%s, round %u", original, round);
        memcpy(bad, good.bytes, good.size);
        damage(bad, good.size, heads_at, heads_size);
        size_t size = unit_random(4) ? good.size : unit_random((uint32_t)good.size);
        CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, bad, size, 0) == (ssize_t)size);
        read_whole(path);
    }
    close(fd);
    free(bad);
    free(good.bytes);
}

TEST(damaged_programs_are_survived) { fuzz_file("/proc/self/exe", 600); }

TEST(damaged_libraries_are_survived)
{
    loaded l = c_library();
    fuzz_file(l.path, 120);
}

TEST(each_truncation_of_the_heads_is_survived)
{
    char path[64];
    image good = image_of("/proc/self/exe");
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)good.bytes;
    int fd = memfd_create("cut", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(pwrite(fd, good.bytes, good.size, 0) == (ssize_t)good.size);
    for (size_t size = good.size; size > head->e_shoff; size -= 7) {
        CHECK(ftruncate(fd, (off_t)size) == 0);
        read_whole(path);
    }
    for (size_t size = 1024; size > 0; size--) {
        CHECK(ftruncate(fd, (off_t)size) == 0);
        read_whole(path);
    }
    close(fd);
    free(good.bytes);
}

TEST(damaged_memory_is_survived)
{
    enum { SIZE = 8192 };
    uintptr_t at = getauxval(AT_SYSINFO_EHDR);
    char name[PW_SYMBOL_NAME_SIZE];
    if (!at) return;
    /* Pages that may not be read stand around the copy. */
    uint8_t *room = mmap(NULL, SIZE + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *copy = room + 4096;
    CHECK(room != MAP_FAILED && mprotect(copy, SIZE, PROT_READ | PROT_WRITE) == 0);
    for (uint32_t round = 0; round < unit_rounds(20000); round++) {
        unit_note("round %u", round);
        memcpy(copy, (const void *)at, 4096);
        damage(copy, 2048, 64, 1984);
        pw_elf_symbols symbols;
        pw_elf_result result = pw_elf_symbols_of_memory((uintptr_t)copy, (uintptr_t)copy, MOST, &symbols);
        CHECK((result == PW_ELF_READ) == (symbols.count > 0));
        for (uint32_t i = 0; i < symbols.count; i++) {
            size_t length = pw_elf_name(&symbols, NULL, symbols.symbols[i].value, name);
            CHECK(length < PW_SYMBOL_NAME_SIZE && (!length || strlen(name) == length));
        }
        pw_elf_symbols_free(&symbols);
    }
    munmap(room, SIZE + 2 * 4096);
}

TEST(a_replaced_file_is_not_read_again)
{
    char path[] = "/tmp/pitwall-elf-XXXXXX";
    pw_elf_file file, again;
    image good = image_of("/proc/self/exe");
    int fd = mkstemp(path);
    CHECK(fd >= 0 && pwrite(fd, good.bytes, good.size, 0) == (ssize_t)good.size);
    CHECK(pw_elf_open(&file, path));
    CHECK(pw_elf_reopen(&again, path, &file.stat));
    pw_elf_close(&again);
    CHECK(ftruncate(fd, 100) == 0);
    CHECK(!pw_elf_reopen(&again, path, &file.stat));
    EQUAL(-1, again.fd);
    unlink(path);
    CHECK(!pw_elf_reopen(&again, path, &file.stat));
    pw_elf_close(&file);
    close(fd);
    free(good.bytes);
}

#include "native/elf_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    MOST_SECTIONS = 4096, MOST_SEGMENTS = 1024, MOST_NOTES = 64 << 10, /* bytes of a note section */
    BLOCK = 1024,                    /* symbols read at a time */
    MOST_ENTRIES = 1 << 22,          /* symbols looked at in a table */
    MOST_NAMES = 16 << 20,           /* bytes of names copied from memory */
    MOST_ALIASES = 32                /* names compared for one address */
};

/* ---- reading ---- */

static bool
read_file(const pw_elf_file *file, uint64_t at, void *to, size_t size)
{
    uint64_t whole = (uint64_t)file->stat.st_size;
    if (at > whole || size > whole - at) return false;
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(file->fd, (char *)to + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static bool
read_memory(uint64_t at, void *to, size_t size)
{
    struct iovec there = {(void *)(uintptr_t)at, size}, here = {to, size};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Bytes of a file, or of memory if `file` is NULL. */
static bool
read_bytes(const pw_elf_file *file, uint64_t at, void *to, size_t size)
{
    return file ? read_file(file, at, to, size) : read_memory(at, to, size);
}

static bool
is_of_this_machine(const Elf64_Ehdr *head)
{
    static const union { uint16_t word; uint8_t first; } order = {1};
#if defined(__x86_64__)
    enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
    enum { MACHINE = EM_AARCH64 };
#else
    enum { MACHINE = EM_NONE };
#endif
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == (order.first ? ELFDATA2LSB : ELFDATA2MSB) && head->e_machine == MACHINE;
}

/* ---- an open file ---- */

/* The build id among the notes of a section or segment. */
static void
read_build_id(pw_elf_file *file, uint64_t at, uint64_t size)
{
    uint8_t id[PW_BUILD_ID_SIZE];
    if (size > MOST_NOTES || at > UINT64_MAX - size) return;
    for (uint64_t end = at + size; !file->build_id[0] && end - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        char owner[4];
        if (!read_file(file, at, &note, sizeof note)) return;
        at += sizeof note;
        uint64_t name = ((uint64_t)note.n_namesz + 3) & ~3ull, value = ((uint64_t)note.n_descsz + 3) & ~3ull;
        if (name + value > end - at) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz > 0 && note.n_descsz <= sizeof id &&
            read_file(file, at, owner, 4) && memcmp(owner, "GNU", 4) == 0 &&
            read_file(file, at + name, id, note.n_descsz)) {
            for (uint32_t i = 0; i < note.n_descsz; i++) pw_elf_put_hex(file->build_id + 2 * i, id[i]);
            file->build_id[2 * note.n_descsz] = '\0';
        }
        at += name + value;
    }
}

static bool
read_section(const pw_elf_file *file, uint32_t number, Elf64_Shdr *section)
{
    return file->head.e_shentsize == sizeof *section && number < MOST_SECTIONS &&
           file->head.e_shoff <= (uint64_t)file->stat.st_size &&
           read_file(file, file->head.e_shoff + number * sizeof *section, section, sizeof *section);
}

static void
read_sections(pw_elf_file *file)
{
    static const char link_name[] = ".gnu_debuglink";
    Elf64_Shdr names = {0}, section;
    char name[sizeof link_name];
    if (!file->head.e_shoff || !file->head.e_shstrndx) return;
    if (!read_section(file, file->head.e_shstrndx, &names)) names.sh_type = SHT_NULL;
    for (uint32_t i = 1; i < file->head.e_shnum && read_section(file, i, &section); i++) {
        switch (section.sh_type) {
          case SHT_SYMTAB:
            if (read_section(file, section.sh_link, &file->symtab_names)) file->symtab = section;
            break;
          case SHT_DYNSYM:
            if (read_section(file, section.sh_link, &file->dynsym_names)) file->dynsym = section;
            break;
          case SHT_NOTE: read_build_id(file, section.sh_offset, section.sh_size); break;
          case SHT_PROGBITS:
            if (names.sh_type != SHT_STRTAB || names.sh_offset > UINT64_MAX - section.sh_name) break;
            if (!read_file(file, names.sh_offset + section.sh_name, name, sizeof name)) break;
            if (memcmp(name, link_name, sizeof name) != 0) break;
            size_t size = section.sh_size < sizeof file->debug_link ? section.sh_size : sizeof file->debug_link;
            if (!read_file(file, section.sh_offset, file->debug_link, size)) file->debug_link[0] = '\0';
            file->debug_link[sizeof file->debug_link - 1] = '\0';
            if (strchr(file->debug_link, '/')) file->debug_link[0] = '\0';
            break;
        }
    }
}

/* Objects without section headers have their build id in a segment. */
static void
read_segments(pw_elf_file *file)
{
    Elf64_Phdr segment;
    if (file->head.e_phentsize != sizeof segment || file->head.e_phoff > (uint64_t)file->stat.st_size) return;
    for (uint32_t i = 0; i < file->head.e_phnum && i < MOST_SEGMENTS && !file->build_id[0]; i++) {
        if (!read_file(file, file->head.e_phoff + i * sizeof segment, &segment, sizeof segment)) return;
        if (segment.p_type == PT_NOTE) read_build_id(file, segment.p_offset, segment.p_filesz);
    }
}

/* Opens a regular file. */
static bool
open_file(pw_elf_file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* NONBLOCK: a named pipe does not wait */
    if (file->fd < 0) return false;
    if (fstat(file->fd, &file->stat) == 0 && S_ISREG(file->stat.st_mode)) return true;
    pw_elf_close(file);
    return false;
}

bool
pw_elf_reopen(pw_elf_file *file, const char *path, const struct stat *stat)
{
    if (!open_file(file, path)) return false;
    const struct stat *now = &file->stat;
    if (now->st_dev == stat->st_dev && now->st_ino == stat->st_ino && now->st_size == stat->st_size &&
        now->st_mtim.tv_sec == stat->st_mtim.tv_sec && now->st_mtim.tv_nsec == stat->st_mtim.tv_nsec) return true;
    pw_elf_close(file);
    return false;
}

bool
pw_elf_open(pw_elf_file *file, const char *path)
{
    if (!open_file(file, path)) return false;
    if (!read_file(file, 0, &file->head, sizeof file->head) || !is_of_this_machine(&file->head)) {
        pw_elf_close(file);
        return false;
    }
    read_sections(file);
    if (!file->build_id[0]) read_segments(file);
    return true;
}

void
pw_elf_close(pw_elf_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

/* Are `size` bytes of the file the same as those in memory? */
static bool
is_same(const pw_elf_file *file, uint64_t at, uint64_t address, uint64_t size)
{
    char ours[1024], theirs[1024];
    for (uint64_t done = 0; done < size; done += sizeof ours) {
        size_t n = size - done < sizeof ours ? (size_t)(size - done) : sizeof ours;
        if (!read_file(file, at + done, theirs, n) || !read_memory(address + done, ours, n)) return false;
        if (memcmp(ours, theirs, n) != 0) return false;
    }
    return true;
}

bool
pw_elf_is_loaded(const pw_elf_file *file, uintptr_t bias, uintptr_t head)
{
    enum { COMPARED = 256 << 10 };
    const Elf64_Ehdr *elf = &file->head;
    Elf64_Phdr segment;
    if (elf->e_phentsize != sizeof segment || elf->e_phnum > MOST_SEGMENTS) return false;
    if (!is_same(file, 0, head, sizeof *elf)) return false;
    if (elf->e_phoff > (uint64_t)file->stat.st_size) return false;
    if (!is_same(file, elf->e_phoff, head + elf->e_phoff, elf->e_phnum * sizeof segment)) return false;
    for (uint32_t i = 0; i < elf->e_phnum; i++) {
        if (!read_file(file, elf->e_phoff + i * sizeof segment, &segment, sizeof segment)) return false;
        if (segment.p_type != PT_GNU_EH_FRAME || segment.p_offset > (uint64_t)file->stat.st_size) continue;
        uint64_t size = segment.p_filesz < COMPARED ? segment.p_filesz : COMPARED;
        if (!is_same(file, segment.p_offset, bias + segment.p_vaddr, size)) return false;
    }
    return true;
}

/* ---- tables of symbols ---- */

static int
by_value(const void *a, const void *b)
{
    const pw_elf_symbol *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* Is it a function of the object, or a label that may begin one? */
static bool
is_function(const Elf64_Sym *s, pw_elf_symbol *found)
{
    int type = ELF64_ST_TYPE(s->st_info), binding = ELF64_ST_BIND(s->st_info);
    bool untyped = type == STT_NOTYPE && binding != STB_LOCAL;
    if (!untyped && type != STT_FUNC && type != STT_GNU_IFUNC) return false;
    if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON) return false;
    if (!s->st_name || !s->st_value || s->st_value >> 55) return false;
    *found = (pw_elf_symbol){
        .value = s->st_value, .rank = untyped ? 2 : binding == STB_LOCAL ? 1 : 0,
        .size = s->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)s->st_size, .name = s->st_name,
    };
    return true;
}

/* The functions among `count` symbols. */
static pw_elf_result
collect(const pw_elf_file *file, uint64_t at, uint64_t count, uint32_t most, pw_elf_symbols *found)
{
    Elf64_Sym *block = malloc(BLOCK * sizeof *block);
    uint32_t room = 0;
    bool fits = count <= MOST_ENTRIES, readable = block != NULL;
    for (uint64_t i = 0; fits && readable && i < count; i += BLOCK) {
        uint64_t n = count - i < BLOCK ? count - i : BLOCK;
        readable = read_bytes(file, at + i * sizeof *block, block, n * sizeof *block);
        for (uint64_t k = 0; readable && k < n; k++) {
            pw_elf_symbol symbol;
            if (!is_function(&block[k], &symbol) || symbol.name >= found->names_size) continue;
            if (found->count == most) {
                fits = false;
                break;
            }
            if (found->count == room) {
                room = room ? room * 2 : 64;
                pw_elf_symbol *larger = realloc(found->symbols, room * sizeof *larger);
                if (!larger) {
                    fits = false;
                    break;
                }
                found->symbols = larger;
            }
            found->symbols[found->count++] = symbol;
        }
    }
    free(block);
    if (!fits || !readable || !found->count) {
        pw_elf_symbols_free(found);
        return fits ? PW_ELF_NONE : PW_ELF_TOO_MANY;
    }
    qsort(found->symbols, found->count, sizeof *found->symbols, by_value);
    pw_elf_symbol *exact = realloc(found->symbols, found->count * sizeof *exact);
    if (exact) found->symbols = exact;
    return PW_ELF_READ;
}

pw_elf_result
pw_elf_symbols_of_file(const pw_elf_file *file, bool dynamic, uint32_t most, pw_elf_symbols *found)
{
    const Elf64_Shdr *table = dynamic ? &file->dynsym : &file->symtab;
    const Elf64_Shdr *names = dynamic ? &file->dynsym_names : &file->symtab_names;
    uint64_t size = (uint64_t)file->stat.st_size;
    *found = (pw_elf_symbols){.names_at = names->sh_offset, .names_size = names->sh_size};
    if (table->sh_type == SHT_NULL || table->sh_entsize != sizeof(Elf64_Sym) || names->sh_type != SHT_STRTAB) {
        return PW_ELF_NONE;
    }
    if (names->sh_offset > size || names->sh_size > size - names->sh_offset) return PW_ELF_NONE;
    if (table->sh_offset > size || table->sh_size > size - table->sh_offset) return PW_ELF_NONE;
    return collect(file, table->sh_offset, table->sh_size / sizeof(Elf64_Sym), most, found);
}

/* The number of symbols in a GNU hash table: one more than the highest number in a chain. 0: unknown. */
static uint64_t
count_of_gnu_hash(uint64_t at)
{
    struct { uint32_t buckets, first, words, shift; } head = {0};
    uint32_t block[BLOCK], last = 0;
    if (!read_memory(at, &head, sizeof head) || head.words > MOST_ENTRIES || head.buckets > MOST_ENTRIES) return 0;
    uint64_t buckets = at + sizeof head + 8ull * head.words, chains = buckets + 4ull * head.buckets;
    for (uint32_t i = 0; i < head.buckets; i += BLOCK) {
        uint32_t n = head.buckets - i < BLOCK ? head.buckets - i : BLOCK;
        if (!read_memory(buckets + 4ull * i, block, n * sizeof *block)) return 0;
        for (uint32_t k = 0; k < n; k++) last = block[k] > last ? block[k] : last;
    }
    if (last < head.first || last > MOST_ENTRIES) return 0;
    for (uint32_t link = 0; !(link & 1); last++) {
        if (last > MOST_ENTRIES || !read_memory(chains + 4ull * (last - head.first), &link, sizeof link)) return 0;
    }
    return last;
}

/* The address of the table of what the loader needs. 0: none. */
static uint64_t
dynamic_section(uintptr_t bias, uintptr_t head)
{
    Elf64_Ehdr elf;
    Elf64_Phdr segment;
    if (!read_memory(head, &elf, sizeof elf) || !is_of_this_machine(&elf) || elf.e_phentsize != sizeof segment) {
        return 0;
    }
    for (uint32_t i = 0; i < elf.e_phnum && i < MOST_SEGMENTS; i++) {
        if (!read_memory(head + elf.e_phoff + i * sizeof segment, &segment, sizeof segment)) return 0;
        if (segment.p_type == PT_DYNAMIC) return bias + segment.p_vaddr;
    }
    return 0;
}

pw_elf_result
pw_elf_symbols_of_memory(uintptr_t bias, uintptr_t head, uint32_t most, pw_elf_symbols *found)
{
    enum { MOST_TAGS = 256 };
    uint64_t at = dynamic_section(bias, head), symbols = 0, names = 0, count = 0, gnu_hash = 0;
    *found = (pw_elf_symbols){0};
    for (int i = 0; at && i < MOST_TAGS; i++) {
        Elf64_Dyn entry;
        if (!read_memory(at + i * sizeof entry, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
        /* The loader makes addresses of most virtual addresses, but not in the vdso. */
        uint64_t value = entry.d_un.d_ptr, there = value < bias ? bias + value : value;
        uint32_t hash[2]; /* buckets, symbols */
        switch (entry.d_tag) {
          case DT_SYMTAB: symbols = there; break;
          case DT_STRTAB: names = there; break;
          case DT_STRSZ: found->names_size = value; break;
          case DT_GNU_HASH: gnu_hash = there; break;
          case DT_HASH: if (read_memory(there, hash, sizeof hash)) count = hash[1]; break;
        }
    }
    if (gnu_hash && !count) count = count_of_gnu_hash(gnu_hash);
    if (!symbols || !names || !count || !found->names_size || found->names_size > MOST_NAMES) return PW_ELF_NONE;
    pw_elf_result result = collect(NULL, symbols, count, most, found);
    if (result != PW_ELF_READ) return result;
    found->names = malloc(found->names_size);
    if (found->names && read_memory(names, found->names, found->names_size)) return PW_ELF_READ;
    pw_elf_symbols_free(found);
    return PW_ELF_NONE;
}

void
pw_elf_symbols_free(pw_elf_symbols *symbols)
{
    free(symbols->symbols);
    free(symbols->names);
    *symbols = (pw_elf_symbols){0};
}

/* ---- names ---- */

/* Copies the name that begins at `at`. Returns its length; 0: there is none. */
static size_t
copy_name(const pw_elf_symbols *symbols, const pw_elf_file *file, uint64_t at, char name[PW_SYMBOL_NAME_SIZE])
{
    enum { FIRST = 128 }; /* most names end here */
    if (at >= symbols->names_size) return 0;
    uint64_t rest = symbols->names_size - at;
    size_t most = rest < PW_SYMBOL_NAME_SIZE - 1 ? (size_t)rest : PW_SYMBOL_NAME_SIZE - 1;
    for (size_t size = most < FIRST ? most : FIRST;; size = most) {
        if (symbols->names) memcpy(name, symbols->names + at, size);
        else if (!file || !read_file(file, symbols->names_at + at, name, size)) return 0;
        size_t length = strnlen(name, size);
        if (length == size && size < most) continue;
        name[length] = '\0';
        return length;
    }
}

static size_t
underscores(const char *name)
{
    return strspn(name, "_");
}

/* Is `a` the better name of the same function? Fewer leading underscores, then the shorter one. */
static bool
is_better(const char *a, size_t a_length, const char *b, size_t b_length)
{
    if (underscores(a) != underscores(b)) return underscores(a) < underscores(b);
    if (a_length != b_length) return a_length < b_length;
    return strcmp(a, b) < 0;
}

/* The number of the last symbol that begins at the address or before; symbols->count: none. */
static uint32_t
last_before(const pw_elf_symbols *symbols, uint64_t address)
{
    uint32_t from = 0, to = symbols->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (symbols->symbols[middle].value <= address) from = middle + 1;
        else to = middle;
    }
    return from ? from - 1 : symbols->count;
}

static bool
holds(const pw_elf_symbol *symbol, uint64_t address)
{
    return symbol->value == address || address - symbol->value < symbol->size;
}

size_t
pw_elf_name(const pw_elf_symbols *symbols, const pw_elf_file *file, uint64_t address, char name[PW_SYMBOL_NAME_SIZE])
{
    enum { MOST_BACK = 64 }; /* symbols within another one, such as labels */
    uint32_t at = last_before(symbols, address), back = 0;
    if (at == symbols->count) return 0;
    while (!holds(&symbols->symbols[at], address)) {
        if (at-- == 0 || ++back == MOST_BACK) return 0;
    }
    uint64_t value = symbols->symbols[at].value;
    while (at > 0 && symbols->symbols[at - 1].value == value) at--;

    char other[PW_SYMBOL_NAME_SIZE];
    size_t length = 0;
    int rank = -1;
    for (uint32_t i = at; i < symbols->count && i - at < MOST_ALIASES && symbols->symbols[i].value == value; i++) {
        const pw_elf_symbol *symbol = &symbols->symbols[i];
        if (!holds(symbol, address) || (length && symbol->rank != rank)) continue;
        size_t its = copy_name(symbols, file, symbol->name, other);
        if (!its || other[0] == '$' || (length && !is_better(other, its, name, length))) continue;
        memcpy(name, other, its + 1);
        length = its;
        rank = symbol->rank;
    }
    return length;
}

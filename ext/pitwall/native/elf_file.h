/* Reads symbols and build ids of ELF objects, 64 bits, of this machine's byte order: from a file, or from the memory
 * that an object is loaded to. Nothing in an object is trusted. Each offset, size and count is checked, and bytes come
 * through system calls, so that a file that shrinks meanwhile or memory that is unmapped meanwhile gives an error.
 * Never called in a signal handler. */
#ifndef PITWALL_ELF_FILE_H
#define PITWALL_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
    PW_BUILD_ID_SIZE = 64,                         /* bytes; longer ids are not taken */
    PW_BUILD_ID_HEX = 2 * PW_BUILD_ID_SIZE + 1,
    PW_SYMBOL_NAME_SIZE = 4096                     /* with the final NUL; longer names are cut */
};

static inline void
pw_elf_put_hex(char to[2], uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    to[0] = digits[byte >> 4];
    to[1] = digits[byte & 15];
}

/* An open file. */
typedef struct {
    int fd; /* -1: closed */
    struct stat stat;
    Elf64_Ehdr head;
    Elf64_Shdr symtab, dynsym, symtab_names, dynsym_names; /* sh_type SHT_NULL: the file has none */
    char debug_link[256];                                  /* file name of the debug file; "": none */
    char build_id[PW_BUILD_ID_HEX];                        /* in hex; "": none */
} pw_elf_file;

/* False: no regular file of that name can be read, or it is no object of this machine. */
bool pw_elf_open(pw_elf_file *file, const char *path);
/* Opens the file again for pw_elf_name only. False: it is no longer the file that `stat` describes. */
bool pw_elf_reopen(pw_elf_file *file, const char *path, const struct stat *stat);
void pw_elf_close(pw_elf_file *file);

/* Was the object that is loaded at `bias` loaded from a file of the same contents? For objects without build id.
 * `head`: the address of the ELF header. Compares headers and the table of functions for unwinding. */
bool pw_elf_is_loaded(const pw_elf_file *file, uintptr_t bias, uintptr_t head);

/* A function. `value` is its virtual address in the object. Names are looked up when they are asked for. */
typedef struct {
    uint64_t value : 56, rank : 8; /* rank: 0 exported, 1 local, 2 without a type */
    uint32_t size, name;           /* name: where it begins in the names */
} pw_elf_symbol;

typedef struct {
    pw_elf_symbol *symbols; /* in the order of their values */
    uint32_t count;
    char *names;            /* a copy; NULL: they lie in the file, at names_at */
    uint64_t names_at, names_size;
} pw_elf_symbols;

typedef enum { PW_ELF_READ, PW_ELF_NONE, PW_ELF_TOO_MANY } pw_elf_result;

/* The functions of one of a file's two tables. Takes at most `most` of them: PW_ELF_TOO_MANY if there are more. */
pw_elf_result pw_elf_symbols_of_file(const pw_elf_file *file, bool dynamic, uint32_t most, pw_elf_symbols *found);

/* The functions that a loaded object exports. `bias`: the address of virtual address 0; `head`: the address of the
 * ELF header. */
pw_elf_result pw_elf_symbols_of_memory(uintptr_t bias, uintptr_t head, uint32_t most, pw_elf_symbols *found);

void pw_elf_symbols_free(pw_elf_symbols *symbols);

/* The name of the function at a virtual address, into `name`. `file`: the file of the symbols, NULL if these have a
 * copy of the names. Returns the length; 0: no function of these is there. */
size_t pw_elf_name(const pw_elf_symbols *symbols, const pw_elf_file *file, uint64_t address,
                   char name[PW_SYMBOL_NAME_SIZE]);

#endif

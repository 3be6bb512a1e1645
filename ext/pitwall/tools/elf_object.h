/* Finds the tables that the loader used for a loaded ELF object. gvl_watch.c and stand_ins.c put functions of ours
 * into the slots that these tables list. */
#ifndef PITWALL_ELF_OBJECT_H
#define PITWALL_ELF_OBJECT_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

typedef struct {
    uintptr_t base, from, to; /* from, to: the part that is read-only once the object has been loaded */
    const Elf64_Sym *symbols;
    const char *names;
    const Elf64_Rela *tables[2]; /* relocations of slots; NULL: the object has none */
    size_t sizes[2];             /* in bytes */
} pw_elf_object;

static inline bool
pw_elf_covers(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (uintptr_t)address - info->dlpi_addr - part->p_vaddr < part->p_memsz) {
            return true;
        }
    }
    return false;
}

/* False: the object has no symbols. */
static inline bool
pw_elf_read(const struct dl_phdr_info *info, pw_elf_object *o)
{
    *o = (pw_elf_object){.base = info->dlpi_addr};
    const Elf64_Dyn *dynamic = NULL;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn *)(o->base + part->p_vaddr);
        if (part->p_type == PT_GNU_RELRO) {
            o->from = (o->base + part->p_vaddr) & ~(page - 1);
            o->to = (o->base + part->p_vaddr + part->p_memsz) & ~(page - 1);
        }
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr, there = value < o->base ? o->base + value : value;
        switch (dynamic->d_tag) {
          case DT_SYMTAB: o->symbols = (const Elf64_Sym *)there; break;
          case DT_STRTAB: o->names = (const char *)there; break;
          case DT_RELA: o->tables[0] = (const Elf64_Rela *)there; break;
          case DT_RELASZ: o->sizes[0] = value; break;
          case DT_JMPREL: o->tables[1] = (const Elf64_Rela *)there; break;
          case DT_PLTRELSZ: o->sizes[1] = value; break;
        }
    }
    return o->symbols && o->names;
}

#endif

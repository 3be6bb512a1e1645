/* Names of native functions. An object's symbols are read from its file, or from its debug file, at the first question
 * about a function of it. Called on the drain's thread only, or once that thread has ended: the functions read files
 * and allocate, but they never call Ruby and never need the GVL. */
#ifndef PITWALL_SYMBOLS_H
#define PITWALL_SYMBOLS_H

#include "native/objects.h"
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;   /* linkage name, or "libx.so.1+0x1234" where no symbol is known; valid until the next call */
    size_t name_length;
    const char *object; /* path of the shared object, "[vdso]"; "" for none; valid until pw_symbols_release */
} pw_symbol;

/* The name of the object's function that begins at the address `function`. NULL: code of no object. */
void pw_symbol_of(const pw_object *loaded, uintptr_t function, pw_symbol *found);

/* Where the names of an object came from. The numbers stand in OBJS chunks. */
enum { PW_NAMES_NONE, PW_NAMES_SYMTAB, PW_NAMES_DYNSYM, PW_NAMES_DEBUG_FILE, PW_NAMES_TOO_MANY };

typedef struct {
    const char *path;
    const char *build_id; /* in hex; "": the object has none */
    uint8_t names_from;   /* PW_NAMES_... */
} pw_named_object;

/* The next object that a function was asked for, each once; NULL: no more for now. */
const pw_named_object *pw_symbols_next_object(void);

/* Frees everything. Questions after that read the files again. */
void pw_symbols_release(void);

/* In the child of a fork: forgets everything, as if it had been released. Nothing is freed, because the drain's thread
 * may have been at work. */
void pw_symbols_child(void);

#endif

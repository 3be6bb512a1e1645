/* The shared objects that the loader has loaded: the program, its libraries, C extensions, the kernel's vDSO.
 *
 * The list only grows. An object that was unloaded stays in the list, so that addresses taken while it was there can
 * still be named. If it is loaded again at the same address, it is the same object of the list. */
#ifndef PITWALL_OBJECTS_H
#define PITWALL_OBJECTS_H

#include "native/cfi_table.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PW_BUILD_ID_MOST = 64, PW_OBJECTS_MOST = 4096 };

typedef struct {
    uint32_t number;         /* its place in the list */
    uintptr_t bias;          /* an address in memory minus the ELF virtual address */
    uintptr_t from, to;      /* its executable part, in memory; to: behind the last byte */
    const char *path;        /* "/usr/lib/x86_64-linux-gnu/libc.so.6"; "[vdso]"; "" where the loader knows none */
    uint8_t build_id_size;   /* 0: it has none */
    uint8_t build_id[PW_BUILD_ID_MOST];
    _Atomic bool unloaded;
    uint64_t print;          /* of its headers: another file at the same address has another one */
    pw_cfi_table *cfi;       /* how its functions are unwound; NULL: unknown, or freed. Of unwind.c alone */
} pw_object;

/* Looks at the loader's list. If it has changed, or `always`, `seen` is called for each loaded object, known or new.
 * The object's memory and its `headers` (struct dl_phdr_info) may be read during that call alone, because the loader is
 * locked. It must not use malloc, whose lock another thread may hold that waits for the loader. Returns whether `seen`
 * was called. One thread at a time: another one's call returns false. Not in a handler. */
bool pw_objects_refresh(bool always, void (*seen)(pw_object *object, const void *headers));

/* Objects are numbered from 0. */
uint32_t pw_objects_count(void);
pw_object *pw_object_numbered(uint32_t number);

/* The object whose executable part has the address. Of several, the one that is loaded, else the one that was loaded
 * last. NULL: none. */
const pw_object *pw_object_at(uintptr_t address);

/* In the child of a fork, before other threads are there. */
void pw_objects_child(void);

#endif

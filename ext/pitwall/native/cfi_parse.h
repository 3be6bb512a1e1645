/* Makes the table of an object from its .eh_frame. */
#ifndef PITWALL_CFI_PARSE_H
#define PITWALL_CFI_PARSE_H

#include "native/cfi_table.h"

typedef struct {
    const uint8_t *bytes;  /* .eh_frame; `size` may reach beyond its end, as far as there is memory */
    size_t size;
    uintptr_t address;     /* where the bytes belong: addresses in them are relative to it */
    uintptr_t from, to;    /* the code that they may describe */
} pw_cfi_section;

/* The part of an object's memory in which all of its .eh_frame is, by its .eh_frame_hdr of `size` bytes. False: none. */
bool pw_cfi_find(const uint8_t *header, size_t size, uintptr_t *eh_frame);

/* NULL: nothing usable, or no memory. Does not use malloc. */
pw_cfi_table *pw_cfi_parse(const pw_cfi_section *section);

#endif

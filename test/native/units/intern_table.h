/* The table of the tests of intern.c, and what these tests share. */
#ifndef PITWALL_INTERN_TABLE_H
#define PITWALL_INTERN_TABLE_H

#include "failing_memory.h"
#include "intern.h"
#include "stack_walk.h"
#include "unit.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* no test file uses all of this */

_Atomic bool pw_memory_refused;

static pw_intern table;

static void
begin(void)
{
    memory_fails(0, 0);
    pw_memory_refused = false;
    CHECK(pw_intern_init(&table));
}

static void
end(void)
{
    pw_intern_free(&table);
    EQUAL(0, memory_held);
}

/* A word that looks like a captured frame: a multiple of 8 that is no special constant. */
static VALUE frame_of(uint32_t n) { return 0x7f0000000000u + (VALUE)n * 40; }

/* Reads integers in the recording's encoding. */
typedef struct { const pw_buffer *buffer; size_t at; } reader;

static uint64_t
next_int(reader *r)
{
    uint64_t value = 0;
    uint8_t byte;
    do {
        CHECK(r->at < r->buffer->size);
        byte = r->buffer->data[r->at++];
        value = value << 7 | (byte & 0x7f);
    } while (byte & 0x80);
    return value;
}

/* Makes a frame wait for its owner, as naming does: frames before unresolved_from are not named again. */
static void
let_wait(uint32_t at)
{
    table.frames[at].waiting = true;
    table.frames[at].owner = 0;
    if (table.unresolved_from <= at) table.unresolved_from = at + 1;
}

#endif

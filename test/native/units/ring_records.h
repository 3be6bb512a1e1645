/* Records with known contents, for the tests of the ring. */
#ifndef PITWALL_RING_RECORDS_H
#define PITWALL_RING_RECORDS_H

#include "ring.h"
#include "unit.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* no test file uses all of this */

typedef struct {
    pw_record_header header;
    uint32_t writer, number; /* number: counts each writer's records, from 1 on */
    uint8_t bytes[];
} record;

enum { LEAST = sizeof(record) };

static uint8_t
byte_of(uint32_t writer, uint32_t number, uint32_t at)
{
    return (uint8_t)(1 + (writer * 31 + number * 7 + at) % 255);
}

static void
fill(record *r, uint32_t writer, uint32_t number, uint32_t bytes)
{
    r->header.kind = (uint8_t)(1 + number % 200);
    r->header.state = (uint8_t)writer;
    r->header.captures = (uint16_t)bytes;
    r->writer = writer;
    r->number = number;
    for (uint32_t i = 0; i < bytes - LEAST; i++) r->bytes[i] = byte_of(writer, number, i);
}

/* False: the ring is full. */
static bool
put(pw_ring *ring, uint32_t writer, uint32_t number, uint32_t bytes)
{
    record *r = (record *)pw_ring_reserve(ring, bytes);
    if (!r) return false;
    fill(r, writer, number, bytes);
    pw_ring_commit(&r->header, bytes);
    return true;
}

static void
check_record(const record *r)
{
    uint32_t bytes = r->header.captures;
    EQUAL((bytes + 7) / 8 * 8, r->header.size);
    EQUAL(1 + r->number % 200, r->header.kind);
    EQUAL((uint8_t)r->writer, r->header.state);
    for (uint32_t i = 0; i < bytes - LEAST; i++) EQUAL(byte_of(r->writer, r->number, i), r->bytes[i]);
}

static void
expect_next(pw_ring *ring, uint32_t writer, uint32_t number)
{
    record *r = (record *)pw_ring_peek(ring);
    CHECK(r);
    EQUAL(writer, r->writer);
    EQUAL(number, r->number);
    check_record(r);
    pw_ring_consume(ring, &r->header);
}

static void
begin(pw_ring *ring, uint64_t size)
{
    CHECK(pw_ring_init(ring, size));
}

static uint64_t used(pw_ring *ring) { return ring->head - ring->tail; }

#endif

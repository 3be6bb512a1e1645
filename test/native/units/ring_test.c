/* The ring in one thread: order, contents, wrap-around, and a full ring.
 *
 * sources: ring.c */
#include "ring_records.h"

TEST(an_empty_ring_has_no_record)
{
    pw_ring ring;
    uint64_t offset = 0;
    begin(&ring, 4096);
    CHECK(!pw_ring_peek(&ring));
    CHECK(!pw_ring_scan(&ring, &offset));
    EQUAL(0, offset);
    pw_ring_free(&ring);
    CHECK(!ring.data);
    pw_ring_free(&ring); /* once more does nothing */
}

TEST(a_size_that_no_memory_has_is_refused)
{
    pw_ring ring;
    CHECK(!pw_ring_init(&ring, (uint64_t)1 << 62));
}

TEST(a_record_comes_back_as_it_was_written)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t bytes = LEAST; bytes < LEAST + 20; bytes++) {
        unit_note("%u bytes", bytes);
        CHECK(put(&ring, 3, bytes, bytes));
        EQUAL((bytes + 7) / 8 * 8, used(&ring));
        expect_next(&ring, 3, bytes);
        EQUAL(0, used(&ring));
    }
    pw_ring_free(&ring);
}

TEST(a_record_that_is_not_committed_hides_those_behind)
{
    pw_ring ring;
    uint64_t offset = 0;
    begin(&ring, 4096);
    record *first = (record *)pw_ring_reserve(&ring, 40);
    CHECK(first);
    CHECK(put(&ring, 1, 2, 64));
    CHECK(!pw_ring_peek(&ring));
    CHECK(!pw_ring_scan(&ring, &offset));
    fill(first, 1, 1, 40);
    CHECK(!pw_ring_peek(&ring));
    pw_ring_commit(&first->header, 40);
    expect_next(&ring, 1, 1);
    expect_next(&ring, 1, 2);
    CHECK(!pw_ring_peek(&ring));
    pw_ring_free(&ring);
}

/* The same record is the oldest one until it is consumed. */
TEST(peeking_leaves_the_record)
{
    pw_ring ring;
    begin(&ring, 4096);
    CHECK(put(&ring, 1, 1, 24));
    CHECK(put(&ring, 1, 2, 24));
    EQUAL(pw_ring_peek(&ring), pw_ring_peek(&ring));
    EQUAL(48, used(&ring));
    expect_next(&ring, 1, 1);
    expect_next(&ring, 1, 2);
    pw_ring_free(&ring);
}

TEST(a_record_that_ends_at_the_end_needs_no_padding)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t i = 1; i <= 8; i++) CHECK(put(&ring, 1, i, 512));
    EQUAL(4096, ring.head);
    for (uint32_t i = 1; i <= 8; i++) expect_next(&ring, 1, i);
    CHECK(put(&ring, 1, 9, 512));
    EQUAL(4096 + 512, ring.head);
    expect_next(&ring, 1, 9);
    pw_ring_free(&ring);
}

/* Four records of 1,000 bytes fit into 4,096 bytes. The fifth begins at the start again, after 96 bytes of padding. */
TEST(a_record_that_does_not_fit_before_the_end_begins_at_the_start)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t i = 1; i <= 4; i++) CHECK(put(&ring, 1, i, 1000));
    expect_next(&ring, 1, 1);
    expect_next(&ring, 1, 2);
    CHECK(put(&ring, 1, 5, 1000));
    EQUAL(4096 + 1000, ring.head);
    expect_next(&ring, 1, 3);
    expect_next(&ring, 1, 4);
    EQUAL(ring.data, pw_ring_peek(&ring));
    EQUAL(4096, ring.tail);
    expect_next(&ring, 1, 5);
    CHECK(!pw_ring_peek(&ring));
    pw_ring_free(&ring);
}

TEST(a_full_ring_refuses_and_keeps_what_it_has)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t i = 1; i <= 64; i++) CHECK(put(&ring, 1, i, 64));
    EQUAL(ring.size, used(&ring));
    CHECK(!pw_ring_reserve(&ring, 8));
    CHECK(!put(&ring, 2, 1, 64));
    EQUAL(ring.size, used(&ring));
    expect_next(&ring, 1, 1);
    CHECK(!pw_ring_reserve(&ring, 65)); /* 72 bytes; 64 are free */
    CHECK(put(&ring, 1, 65, 64));
    CHECK(!pw_ring_reserve(&ring, 8));
    for (uint32_t i = 2; i <= 65; i++) expect_next(&ring, 1, i);
    CHECK(!pw_ring_peek(&ring));
    pw_ring_free(&ring);
}

/* 504 bytes are free before the end. A record of 1,024 bytes takes 1,528: the padding counts as well. */
TEST(padding_needs_room_as_well)
{
    pw_ring ring;
    begin(&ring, 4096);
    CHECK(put(&ring, 1, 1, 1016));
    CHECK(put(&ring, 1, 2, 1024));
    CHECK(put(&ring, 1, 3, 1552));
    EQUAL(504, ring.size - ring.head);
    expect_next(&ring, 1, 1);
    uint64_t head = ring.head;
    CHECK(!pw_ring_reserve(&ring, 1024));
    CHECK(!pw_ring_reserve(&ring, 4096));
    EQUAL(head, ring.head); /* a refusal leaves no padding either */
    CHECK(put(&ring, 1, 4, 1016));
    EQUAL(ring.size, used(&ring));
    for (uint32_t i = 2; i <= 4; i++) expect_next(&ring, 1, i);
    pw_ring_free(&ring);
}

TEST(a_record_as_large_as_the_ring)
{
    pw_ring ring;
    begin(&ring, 4096);
    CHECK(!pw_ring_reserve(&ring, 4097));
    CHECK(put(&ring, 1, 1, 4096));
    CHECK(!pw_ring_reserve(&ring, 8));
    expect_next(&ring, 1, 1);
    CHECK(put(&ring, 1, 2, 16));
    expect_next(&ring, 1, 2);
    CHECK(!pw_ring_reserve(&ring, 4096)); /* not at an offset of 16: it would need padding */
    pw_ring_free(&ring);
}

/* A header of the next lap may lie where a record had its bytes. These bytes must not look like a committed size. */
TEST(a_consumed_record_leaves_zeros)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t lap = 0; lap < 50; lap++) {
        CHECK(put(&ring, 200, 255, 264 + 8 * lap));
        expect_next(&ring, 200, 255);
        pw_record_header *reserved = pw_ring_reserve(&ring, 24);
        CHECK(reserved);
        EQUAL(0, reserved->size);
        CHECK(!pw_ring_peek(&ring));
        fill((record *)reserved, 1, lap, 24);
        pw_ring_commit(reserved, 24);
        expect_next(&ring, 1, lap);
    }
    for (uint64_t i = 0; i < ring.size; i++) {
        unit_note("byte %" PRIu64, i);
        EQUAL(0, ring.data[i]);
    }
    pw_ring_free(&ring);
}

TEST(a_scan_lists_what_is_committed_and_takes_nothing)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t i = 1; i <= 4; i++) CHECK(put(&ring, 1, i, 1000));
    for (uint32_t i = 1; i <= 3; i++) expect_next(&ring, 1, i);
    for (uint32_t i = 5; i <= 7; i++) CHECK(put(&ring, 1, i, 1000)); /* padding between 4 and 5 */
    uint64_t offset = 0;
    for (uint32_t i = 4; i <= 7; i++) {
        record *r = (record *)pw_ring_scan(&ring, &offset);
        CHECK(r);
        EQUAL(i, r->number);
        check_record(r);
    }
    EQUAL(used(&ring), offset);
    CHECK(!pw_ring_scan(&ring, &offset));
    for (uint32_t i = 4; i <= 7; i++) expect_next(&ring, 1, i);
    offset = 0;
    CHECK(!pw_ring_scan(&ring, &offset));
    pw_ring_free(&ring);
}

/* pw_ring_expect only prefetches memory, here across the end. */
TEST(expecting_a_record_changes_nothing)
{
    pw_ring ring;
    begin(&ring, 4096);
    for (uint32_t i = 1; i <= 3; i++) CHECK(put(&ring, 1, i, 1200));
    uint64_t head = ring.head;
    pw_ring_expect(&ring, 4096);
    EQUAL(head, ring.head);
    for (uint32_t i = 1; i <= 3; i++) expect_next(&ring, 1, i);
    pw_ring_free(&ring);
}

/* The oracle is a queue of reservations. Records are committed in random order. */
TEST(random_turns_agree_with_a_queue)
{
    enum { MOST = 512, SIZE = 4096 };
    struct { record *r; uint32_t number, bytes; bool committed; } queue[MOST];
    uint32_t first = 0, last = 0, number = 0, refused = 0;
    uint64_t laps;
    pw_ring ring;
    begin(&ring, SIZE);
    for (uint32_t turn = 0; turn < unit_rounds(200000); turn++) {
        unit_note("turn %u", turn);
        switch (unit_random(4)) {
          case 0:
          case 1: {
            uint32_t bytes = unit_random(20) ? LEAST + unit_random(120) : LEAST + unit_random(2000);
            record *r = (record *)pw_ring_reserve(&ring, bytes);
            uint64_t whole = (bytes + 7) / 8 * 8, at = ring.head % SIZE;
            if (!r) { /* then the record and its padding must not fit */
                CHECK(used(&ring) + whole + (at + whole > SIZE ? SIZE - at : 0) > SIZE);
                refused++;
                break;
            }
            EQUAL((ring.head - whole) % SIZE, (uint64_t)((uint8_t *)r - ring.data));
            CHECK(last - first < MOST);
            fill(r, 1, ++number, bytes);
            queue[last % MOST].r = r, queue[last % MOST].number = number, queue[last % MOST].bytes = bytes;
            queue[last++ % MOST].committed = false;
            break;
          }
          case 2:
            if (first == last) break;
            uint32_t at = (first + unit_random(last - first)) % MOST;
            if (!queue[at].committed) pw_ring_commit(&queue[at].r->header, queue[at].bytes);
            queue[at].committed = true;
            break;
          default: {
            pw_record_header *oldest = pw_ring_peek(&ring);
            if (first == last || !queue[first % MOST].committed) {
                CHECK(!oldest);
                break;
            }
            EQUAL(queue[first % MOST].r, oldest);
            uint64_t offset = 0;
            for (uint32_t i = first; i < last && queue[i % MOST].committed; i++) {
                EQUAL(queue[i % MOST].r, pw_ring_scan(&ring, &offset));
            }
            CHECK(!pw_ring_scan(&ring, &offset));
            expect_next(&ring, 1, queue[first++ % MOST].number);
          }
        }
    }
    laps = ring.head / SIZE;
    CHECK(refused > 100 || unit_quick);
    CHECK(laps > 100 || unit_quick);
    pw_ring_free(&ring);
}

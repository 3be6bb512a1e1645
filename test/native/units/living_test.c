/* One word for each object that is followed, by the object's address.
 *
 * sources: living.c raw_syscall.c
 * wraps: malloc calloc realloc free */
#include "living.h"
#include "failing_memory.h"
#include "unit.h"
#include <sys/mman.h>

enum { LEAF = 1 << PW_LIVING_LEAF_BITS, MIDDLE = 1 << PW_LIVING_MIDDLE_BITS };
static const size_t LEAF_BYTES = LEAF * sizeof(uint32_t), MIDDLE_BYTES = MIDDLE * sizeof(uint32_t *);

/* ---- a heap ---- */

enum { HEAP_PAGES = 8, MOST_SLOTS = HEAP_PAGES << PW_HEAP_PAGE_BITS >> 5 };
enum { MEMORY_PAGES = HEAP_PAGES << (PW_HEAP_PAGE_BITS - 12) };

static uint8_t *heap;                    /* heap pages, one after the other */
static bool memory_gone[MEMORY_PAGES];   /* pages of 4 KiB that are not readable any more */
static VALUE slots[MOST_SLOTS], moved_to[MOST_SLOTS];
static uint32_t slot_count;

static VALUE head_of(VALUE object) { return object >> PW_HEAP_PAGE_BITS << PW_HEAP_PAGE_BITS; }

static bool
is_there(VALUE address)
{
    CHECK(address >= (VALUE)heap);
    CHECK((address - (VALUE)heap) >> 12 < MEMORY_PAGES);
    return !memory_gone[(address - (VALUE)heap) >> 12];
}

static bool is_gone(VALUE object) { return !is_there(object) || !is_there(head_of(object)); }

static void
take_away(uint32_t memory_page)
{
    memory_gone[memory_page] = true;
    EQUAL(0, mprotect(heap + ((size_t)memory_page << 12), 1 << 12, PROT_NONE));
}

static uint32_t
slot_number(VALUE object)
{
    for (uint32_t i = 0; i < slot_count; i++) {
        if (slots[i] == object) return i;
    }
    unit_fail(__FILE__, __LINE__, "0x%" PRIx64 " is no slot", (uint64_t)object);
}

VALUE
rb_gc_location(VALUE object)
{
    uint32_t number = slot_number(object);
    CHECK(!is_gone(object)); /* Ruby reads the page's head */
    return moved_to[number] ? moved_to[number] : object;
}

/* Slots of 80 bytes in each heap page, at multiples of PW_SLOT_UNIT behind the page's head. */
static void
make_heap(void)
{
    size_t page = (size_t)1 << PW_HEAP_PAGE_BITS, size = HEAP_PAGES * page;
    uint8_t *memory = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    heap = (uint8_t *)(((uintptr_t)memory + page - 1) / page * page);
    slot_count = 0;
    memset(memory_gone, 0, sizeof memory_gone);
    for (int i = 0; i < HEAP_PAGES; i++) {
        VALUE from = (VALUE)heap + (VALUE)i * page + 32, to = (VALUE)heap + (VALUE)(i + 1) * page - 40;
        for (VALUE at = (from + PW_SLOT_UNIT - 1) / PW_SLOT_UNIT * PW_SLOT_UNIT; at <= to; at += 80) {
            slots[slot_count] = at;
            moved_to[slot_count] = 0;
            RBASIC(at)->flags = T_STRING;
            slot_count++;
        }
    }
    CHECK(slot_count > 1500);
}

/* Moves the object of one slot to another slot. Ruby marks the old slot as T_MOVED, where it has that type. */
static void
move(uint32_t from, uint32_t to)
{
    moved_to[from] = slots[to];
    if ((int)PW_T_MOVED != (int)PW_NO_TYPE) RBASIC(slots[from])->flags = (VALUE)PW_T_MOVED;
}

static void
begin(void)
{
    memory_fails(0, 0);
    pw_living_free();
    EQUAL(0, pw_living_bytes());
    EQUAL(0, memory_held);
}

static void
end(void)
{
    begin();
    for (uint64_t i = 0; i <= PW_LIVING_TOP; i++) EQUAL(0, pw_living_top[i]);
}

/* ---- visits ---- */

enum { MOST_VISITED = 1 << 15 };
static struct { VALUE object; uint32_t word; } visited[MOST_VISITED];
static uint32_t visits;

static void
visit(VALUE object, uint32_t *word)
{
    CHECK(visits < MOST_VISITED);
    EQUAL(pw_living_at(object), word);
    CHECK(!visits || visited[visits - 1].object < object); /* in the order of addresses */
    visited[visits].object = object;
    visited[visits++].word = *word;
}

static uint32_t
count_all(void)
{
    visits = 0;
    pw_living_each(visit);
    return visits;
}

/* ---- tests ---- */

TEST(nothing_is_followed_at_first)
{
    begin();
    EQUAL(0, pw_living_at(40));
    EQUAL(0, pw_living_take((VALUE)1 << 40));
    EQUAL(0, count_all());
    EQUAL(0, pw_living_bytes());
    end();
}

TEST(a_word_is_taken_once)
{
    VALUE object = 0x7f1234567000u / PW_SLOT_UNIT * PW_SLOT_UNIT;
    begin();
    CHECK(pw_living_set(object, 77));
    EQUAL(77, *pw_living_at(object));
    CHECK(pw_living_set(object, 78));
    EQUAL(1, count_all());
    EQUAL(object, visited[0].object);
    EQUAL(78, visited[0].word);
    EQUAL(78, pw_living_take(object));
    EQUAL(0, pw_living_take(object));
    EQUAL(0, count_all());
    end();
}

TEST(neighbours_are_left_alone)
{
    VALUE first = 0x7f0000000000u / PW_SLOT_UNIT * PW_SLOT_UNIT;
    begin();
    for (uint32_t i = 0; i < 3 * LEAF; i++) CHECK(pw_living_set(first + i * PW_SLOT_UNIT, i + 1));
    for (uint32_t i = 0; i < 3 * LEAF; i += 2) EQUAL(i + 1, pw_living_take(first + i * PW_SLOT_UNIT));
    for (uint32_t i = 0; i < 3 * LEAF; i++) EQUAL(i % 2 ? i + 1 : 0, *pw_living_at(first + i * PW_SLOT_UNIT));
    EQUAL(3 * LEAF / 2, count_all());
    end();
}

TEST(memory_is_taken_by_arrays)
{
    VALUE leaf = (VALUE)LEAF * PW_SLOT_UNIT, middle = leaf * MIDDLE;
    begin();
    CHECK(pw_living_set(2 * middle, 1));
    EQUAL(MIDDLE_BYTES + LEAF_BYTES, pw_living_bytes());
    CHECK(pw_living_set(2 * middle + leaf - PW_SLOT_UNIT, 2)); /* the last of the array */
    EQUAL(MIDDLE_BYTES + LEAF_BYTES, pw_living_bytes());
    CHECK(pw_living_set(2 * middle + leaf, 3));
    EQUAL(MIDDLE_BYTES + 2 * LEAF_BYTES, pw_living_bytes());
    CHECK(pw_living_set(3 * middle - PW_SLOT_UNIT, 4)); /* the last of the middle array */
    EQUAL(MIDDLE_BYTES + 3 * LEAF_BYTES, pw_living_bytes());
    CHECK(pw_living_set(3 * middle, 5));
    EQUAL(2 * MIDDLE_BYTES + 4 * LEAF_BYTES, pw_living_bytes());
    EQUAL(6, memory_held);
    EQUAL(5, count_all());
    for (uint32_t i = 0; i < 5; i++) EQUAL(i + 1, visited[i].word);
    end();
}

/* Programs have addresses below 2 to the power of 47. */
TEST(addresses_go_up_to_the_end_of_a_program)
{
    VALUE last = (((VALUE)1 << 47) - 1) / PW_SLOT_UNIT * PW_SLOT_UNIT;
    begin();
    CHECK(pw_living_set(last, 5));
    CHECK(pw_living_set(0, 6));
    EQUAL(2, count_all());
    EQUAL(0, visited[0].object);
    EQUAL(last, visited[1].object);
    EQUAL(5, pw_living_take(last));
    size_t bytes = pw_living_bytes();
    VALUE next = ((PW_LIVING_TOP + 1) << (PW_LIVING_LEAF_BITS + PW_LIVING_MIDDLE_BITS)) * PW_SLOT_UNIT;
    VALUE beyond[] = {next, (VALUE)1 << 60, ~(VALUE)7};
    for (int i = 0; i < 3; i++) {
        EQUAL(0, pw_living_at(beyond[i]));
        EQUAL(0, pw_living_room(beyond[i]));
        CHECK(!pw_living_set(beyond[i], 7));
        EQUAL(0, pw_living_take(beyond[i]));
    }
    EQUAL(bytes, pw_living_bytes());
    end();
}

/* A pool of addresses: most are dense, one of 20 lies anywhere. */
enum { POOL = 6000 };
static VALUE pool[POOL];
static uint32_t oracle[POOL];

static void
fill_pool(void)
{
    VALUE dense = 0x7f4567000000u / PW_SLOT_UNIT * PW_SLOT_UNIT;
    for (uint32_t i = 0; i < POOL; i++) {
        VALUE far_away = ((VALUE)unit_random(1u << 23) << 24 | (VALUE)i << 9) / PW_SLOT_UNIT * PW_SLOT_UNIT;
        pool[i] = i % 20 ? dense + (VALUE)i * PW_SLOT_UNIT : far_away;
        oracle[i] = 0;
    }
}

static void
check_all_against_oracle(void)
{
    uint32_t expected = 0;
    for (uint32_t i = 0; i < POOL; i++) {
        const uint32_t *at = pw_living_at(pool[i]);
        unit_note("address %u, 0x%" PRIx64, i, (uint64_t)pool[i]);
        EQUAL(oracle[i], at ? *at : 0);
        expected += oracle[i] != 0;
    }
    EQUAL(expected, count_all());
}

TEST(random_turns_agree_with_a_list)
{
    begin();
    fill_pool();
    for (uint32_t turn = 0; turn < unit_rounds(200000); turn++) {
        uint32_t i = unit_random(POOL), word = 1 + unit_random(1000000);
        unit_note("turn %u, address %u", turn, i);
        switch (unit_random(3)) {
          case 0:
            CHECK(pw_living_set(pool[i], word));
            oracle[i] = word;
            break;
          case 1:
            EQUAL(oracle[i], pw_living_take(pool[i]));
            oracle[i] = 0;
            break;
          default: {
            const uint32_t *at = pw_living_at(pool[i]);
            EQUAL(oracle[i], at ? *at : 0);
          }
        }
        if (turn % 20000 == 0) check_all_against_oracle();
    }
    check_all_against_oracle();
    end();
}

/* Refuses the first, second or third request of each turn. A word that could not be set is absent, the others stay, and
 * it can be set later. */
TEST(refused_memory_leaves_the_rest)
{
    uint32_t refused = 0;
    begin();
    fill_pool();
    for (uint32_t turn = 0; turn < unit_rounds(30000); turn++) {
        uint32_t i = unit_random(POOL), word = 1 + unit_random(1000000);
        bool there = pw_living_at(pool[i]) != NULL;
        unit_note("turn %u, address %u", turn, i);
        memory_fails(1 + unit_random(3), 1L << 40);
        bool set = pw_living_set(pool[i], word);
        EQUAL(!memory_refused, set);
        CHECK(!there || set);
        if (set) oracle[i] = word;
        else refused++;
        if (!set) EQUAL(0, pw_living_at(pool[i]));
        if (turn % 10000 == 0) check_all_against_oracle();
    }
    memory_fails(0, 0);
    CHECK(refused > 20);
    check_all_against_oracle();
    for (uint32_t i = 0; i < POOL; i++) CHECK(pw_living_set(pool[i], oracle[i] = i + 1));
    check_all_against_oracle();
    uint64_t middles = 0, leaves = 0;
    for (uint64_t i = 0; i <= PW_LIVING_TOP; i++) {
        middles += pw_living_top[i] != NULL;
        for (uint32_t j = 0; pw_living_top[i] && j < MIDDLE; j++) leaves += pw_living_top[i][j] != NULL;
    }
    EQUAL(middles * MIDDLE_BYTES + leaves * LEAF_BYTES, pw_living_bytes());
    EQUAL(middles + leaves, memory_held);
    end();
}

/* ---- compaction ---- */

static uint32_t gone_count;

static void
take_gone(VALUE object, uint32_t *word)
{
    CHECK(is_gone(object));
    EQUAL(pw_living_at(object), word);
    CHECK(*word);
    *word = 0;
    gone_count++;
}

static void
follow(void)
{
    gone_count = 0;
    pw_living_follow_moves(take_gone);
}

static uint32_t
word_at(uint32_t slot)
{
    const uint32_t *at = pw_living_at(slots[slot]);
    return at ? *at : 0;
}

TEST(what_has_not_moved_stays)
{
    begin();
    make_heap();
    for (uint32_t i = 0; i < slot_count; i += 3) CHECK(pw_living_set(slots[i], i + 1));
    follow();
    for (uint32_t i = 0; i < slot_count; i++) EQUAL(i % 3 ? 0 : i + 1, word_at(i));
    EQUAL(0, gone_count);
    end();
}

/* Three objects change places: a to b, b to c, c to a. */
TEST(objects_that_change_places)
{
    begin();
    make_heap();
    for (uint32_t i = 0; i < 5; i++) CHECK(pw_living_set(slots[i * 100], 10 + i));
    move(0, 100);
    move(100, 200);
    move(200, 0);
    move(300, 301);
    follow();
    EQUAL(12, word_at(0));
    EQUAL(10, word_at(100));
    EQUAL(11, word_at(200));
    EQUAL(0, word_at(300));
    EQUAL(13, word_at(301));
    EQUAL(14, word_at(400));
    EQUAL(5, count_all());
    end();
}

/* Compacts 20 times. Objects move to free slots, and to slots that other objects have left. */
TEST(random_moves_agree_with_a_list)
{
    static uint32_t words[MOST_SLOTS], next[MOST_SLOTS];
    static bool taken[MOST_SLOTS];
    uint32_t most = 0;
    begin();
    make_heap();
    for (uint32_t i = 0; i < slot_count; i++) {
        words[i] = unit_random(3) ? i + 1 : 0;
        if (words[i]) CHECK(pw_living_set(slots[i], words[i]));
    }
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t moves = 0;
        memset(next, 0, sizeof next);
        for (uint32_t i = 0; i < slot_count; i++) {
            moved_to[i] = 0;
            RBASIC(slots[i])->flags = T_STRING;
            taken[i] = words[i] != 0;
        }
        for (uint32_t i = 0; i < slot_count; i++) {
            uint32_t to = unit_random(slot_count);
            if (!words[i] || unit_random(10) == 0 || taken[to]) continue;
            move(i, to);
            next[to] = words[i];
            taken[i] = false; /* another may come here */
            taken[to] = true;
            words[i] = 0;
            moves++;
        }
        follow();
        for (uint32_t i = 0; i < slot_count; i++) {
            if (next[i]) words[i] = next[i];
            unit_note("round %u, slot %u", round, i);
            EQUAL(words[i], word_at(i));
        }
        EQUAL(0, gone_count);
        if (moves > most) most = moves;
    }
    CHECK(most > 300);
    end();
}

/* Each object moves to the next object's slot. The list of moves has to grow. */
TEST(all_move_at_once)
{
    begin();
    make_heap();
    for (uint32_t i = 0; i + 1 < slot_count; i++) {
        CHECK(pw_living_set(slots[i], i + 1));
        move(i, i + 1);
    }
    CHECK(slot_count > 1100); /* the list begins with room for 1,024 */
    follow();
    EQUAL(0, word_at(0));
    for (uint32_t i = 1; i < slot_count; i++) EQUAL(i, word_at(i));
    end();
}

/* Ruby may give heap pages back, and parts of them may hold other data then. A slot may be read, and Ruby asked about
 * it, only if the slot and the page's head are readable. */
TEST(what_lay_in_a_page_that_is_gone_is_handed_over)
{
    enum { A_HEAP_PAGE = 1 << (PW_HEAP_PAGE_BITS - 12) };
    uint32_t lost = 0;
    begin();
    make_heap();
    for (uint32_t i = 0; i + 1 < slot_count; i++) {
        CHECK(pw_living_set(slots[i], i + 1));
        move(i, i + 1);
    }
    for (uint32_t i = 0; i < A_HEAP_PAGE; i++) take_away(2 * A_HEAP_PAGE + i); /* a whole heap page */
    take_away(5 * A_HEAP_PAGE);                                                 /* the head of one */
    take_away(7 * A_HEAP_PAGE + 2);                                             /* a part of one */
    for (uint32_t i = 0; i + 1 < slot_count; i++) lost += is_gone(slots[i]);
    CHECK(lost > 2 * slot_count / HEAP_PAGES);
    follow();
    EQUAL(lost, gone_count);
    EQUAL(slot_count - 1 - lost, count_all());
    for (uint32_t i = 1; i < slot_count; i++) {
        unit_note("slot %u", i);
        EQUAL(is_gone(slots[i - 1]) ? 0 : i, word_at(i));
    }
    end();
}

/* A move that cannot be noted is forgotten: no word stays at the old address, and none appears at a wrong one. */
TEST(moves_without_memory)
{
    for (long refused = 1; refused <= 6; refused++) {
        begin();
        make_heap();
        for (uint32_t i = 0; i + 1 < slot_count; i += 2) {
            CHECK(pw_living_set(slots[i], i + 1));
            move(i, i + 1);
        }
        memory_fails(refused, 1L << 40);
        follow();
        memory_fails(0, 0);
        uint32_t kept = 0;
        for (uint32_t i = 0; i + 1 < slot_count; i += 2) {
            unit_note("request %ld is refused, slot %u", refused, i);
            EQUAL(0, word_at(i));
            CHECK(word_at(i + 1) == 0 || word_at(i + 1) == i + 1);
            kept += word_at(i + 1) != 0;
        }
        EQUAL(kept, count_all());
        CHECK(refused > 1 || kept == 0);
        end();
    }
}

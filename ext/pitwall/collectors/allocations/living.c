#include "collectors/allocations/living.h"
#include "tools/readable.h"
#include <stdlib.h>

uint32_t **pw_living_top[PW_LIVING_TOP + 1];
static size_t bytes;

enum { LEAF = 1 << PW_LIVING_LEAF_BITS, MIDDLE = 1 << PW_LIVING_MIDDLE_BITS };

uint32_t *
pw_living_room(VALUE object)
{
    uint64_t n = object / PW_SLOT_UNIT, high = n >> (PW_LIVING_LEAF_BITS + PW_LIVING_MIDDLE_BITS);
    if (high > PW_LIVING_TOP) return NULL;
    if (!pw_living_top[high]) {
        if (!(pw_living_top[high] = calloc(MIDDLE, sizeof(uint32_t *)))) return NULL;
        bytes += MIDDLE * sizeof(uint32_t *);
    }
    uint32_t **leaf = &pw_living_top[high][n >> PW_LIVING_LEAF_BITS & (MIDDLE - 1)];
    if (!*leaf) {
        if (!(*leaf = calloc(LEAF, sizeof(uint32_t)))) return NULL;
        bytes += LEAF * sizeof(uint32_t);
    }
    return &(*leaf)[n & (LEAF - 1)];
}

void
pw_living_each(void (*visit)(VALUE object, uint32_t *word))
{
    for (uint64_t i = 0; i <= PW_LIVING_TOP; i++) {
        for (uint64_t j = 0; pw_living_top[i] && j < MIDDLE; j++) {
            uint32_t *leaf = pw_living_top[i][j];
            uint64_t first = (i << PW_LIVING_MIDDLE_BITS | j) << PW_LIVING_LEAF_BITS;
            for (uint64_t k = 0; leaf && k < LEAF; k++) {
                if (leaf[k]) visit((VALUE)((first | k) * PW_SLOT_UNIT), &leaf[k]);
            }
        }
    }
}

static struct {
    struct move { VALUE to; uint32_t word; } *moves;
    size_t move_count, move_room;
    void (*is_gone)(VALUE object, uint32_t *word);
    VALUE asked_page;
    bool page_is_there;
} move_state;

/* Is the slot's memory still mapped, and also the header of its heap page? rb_gc_location reads the header. Ruby may
 * have unmapped the heap page, and other data may now lie in a part of it. Each page of memory is checked once,
 * because neighbouring slots are visited one after another. */
static bool
is_there(VALUE object)
{
    enum { PAGE_BITS = 12 };
    if (object >> PAGE_BITS != move_state.asked_page) {
        move_state.asked_page = object >> PAGE_BITS;
        move_state.page_is_there = pw_readable(object) && pw_readable(object >> PW_HEAP_PAGE_BITS << PW_HEAP_PAGE_BITS);
    }
    return move_state.page_is_there;
}

/* Has the object moved? Only moved objects are looked up: the heap pages of other objects may be unmapped. */
static bool
has_moved(VALUE object)
{
    return (int)PW_T_MOVED == (int)PW_NO_TYPE || (RBASIC(object)->flags & RUBY_T_MASK) == PW_T_MOVED;
}

static void
note_move(VALUE object, uint32_t *word)
{
    if (!is_there(object)) {
        move_state.is_gone(object, word);
        return;
    }
    if (!has_moved(object)) return;
    VALUE to = rb_gc_location(object);
    if (to == object) return;
    if (move_state.move_count == move_state.move_room) {
        size_t room = move_state.move_room ? move_state.move_room * 2 : 1024;
        struct move *larger = realloc(move_state.moves, room * sizeof(*move_state.moves));
        if (larger) move_state.moves = larger, move_state.move_room = room;
    }
    if (move_state.move_count < move_state.move_room) {
        move_state.moves[move_state.move_count++] = (struct move){to, *word};
    }
    *word = 0;
}

/* Collects all moves before the first word is set. An object may have moved to a slot that another object left. */
void
pw_living_follow_moves(void (*gone)(VALUE object, uint32_t *word))
{
    move_state.is_gone = gone;
    move_state.asked_page = 0;
    pw_living_each(note_move);
    for (size_t i = 0; i < move_state.move_count; i++) pw_living_set(move_state.moves[i].to, move_state.moves[i].word);
    free(move_state.moves);
    move_state.moves = NULL;
    move_state.move_count = move_state.move_room = 0;
}

void
pw_living_free(void)
{
    for (uint64_t i = 0; i <= PW_LIVING_TOP; i++) {
        if (!pw_living_top[i]) continue;
        for (uint64_t j = 0; j < MIDDLE; j++) free(pw_living_top[i][j]);
        free(pw_living_top[i]);
        pw_living_top[i] = NULL;
    }
    bytes = 0;
}

size_t pw_living_bytes(void) { return bytes; }

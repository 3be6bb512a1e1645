/* Stacks that are joined again from a checkpoint on are those that are joined from the root on.
 *
 * sources: join.c native_room.c */
#include "session/threads.h"
#include "output/intern.h"
#include "sampling/join.h"
#include "session/counters.h"
#include "native/stack_bounds.h"
#include "unit.h"

__thread pw_stack_bounds pw_own_stack = {4096, 8192, 0};
_Atomic int64_t pw_counts[PW_COUNTERS];

enum { DEEP = PW_MAX_DEPTH, FUNCTIONS = 5 };

static pw_native_room *room, *afresh;
static pw_frame_seen seen[DEEP];
static pw_walk walk, walk_afresh;
static pw_native_frame natives[PW_NATIVE_DEPTH]; /* root first */

/* What the drain was told. */
static struct { VALUE frames[DEEP + 1]; int lines[DEEP + 1]; uint32_t count; } told;

static void
begin(void)
{
    room = pw_native_room_new(DEEP);
    afresh = pw_native_room_new(DEEP);
    CHECK(room && afresh);
    walk = (pw_walk){.seen = seen};
    told.count = 0;
}

static void
end(void)
{
    pw_native_room_free(room);
    pw_native_room_free(afresh);
}

static pw_frame_role
some_role(void)
{
    uint32_t which = unit_random(8);
    if (which == 0) return (pw_frame_role){0, PW_ROLE_NONE};
    if (which < 3) return (pw_frame_role){0, PW_ROLE_FIRST};
    if (which < 5) return (pw_frame_role){1 + unit_random(FUNCTIONS), PW_ROLE_C};
    return (pw_frame_role){0, PW_ROLE_CODE};
}

static pw_native_frame
some_native(void)
{
    static const uint8_t kinds[] = {PW_NATIVE_FUNCTION, PW_NATIVE_FUNCTION, PW_NATIVE_FUNCTION, PW_NATIVE_LOOP,
                                    PW_NATIVE_LOOP, PW_NATIVE_COMPILED, PW_NATIVE_UNKNOWN};
    return (pw_native_frame){.function = 1 + unit_random(FUNCTIONS), .kind = kinds[unit_random(sizeof kinds)],
                             .cfa = unit_random(10) ? 5000 : 9000};
}

/* Some frames return, others are called. */
static void
change_control_frames(uint32_t most)
{
    uint32_t same = unit_random(walk.depth + 1);
    if (unit_random(2) && walk.depth > 3) same = walk.depth - unit_random(3);
    uint32_t depth = same + unit_random(most - same > 8 && unit_random(4) ? 8 : most - same + 1);
    for (uint32_t i = same; i < depth; i++) {
        room->roles[i] = some_role();
        bool listed = room->roles[i].role != PW_ROLE_NONE;
        seen[i] = (pw_frame_seen){.frame = listed ? 8 + 8 * unit_random(6) : 0, .line = (int)unit_random(2),
                                  .owner = unit_random(2) * 16};
    }
    if (same < walk.kept) walk.kept = same;
    walk.depth = depth;
    walk.cut = unit_random(40) == 0;
    if (walk.cut) walk.kept = 0;
}

/* Returns how many native frames next to the root are as they were. */
static uint32_t
change_natives(uint32_t most)
{
    uint32_t before = room->whole ? room->count : 0, kept = unit_random(before + 1);
    if (unit_random(2) && before > 3) kept = before - unit_random(3);
    uint32_t count = kept + unit_random(most - kept > 8 && unit_random(4) ? 8 : most - kept + 1);
    for (uint32_t i = kept; i < count; i++) natives[i] = some_native();
    room->count = count;
    room->frames = room->frames_end - count;
    for (uint32_t i = 0; i < count; i++) room->frames[count - 1 - i] = natives[i];
    room->whole = unit_random(20) != 0;
    return kept;
}

/* The same stacks, joined by a room that knows no stack before. */
static void
join_afresh(VALUE leaf, uint32_t inner)
{
    afresh->count = room->count;
    afresh->frames = afresh->frames_end - room->count;
    memcpy(afresh->frames, room->frames, room->count * sizeof(pw_native_frame));
    memcpy(afresh->roles, room->roles, walk.depth * sizeof(pw_frame_role));
    afresh->whole = room->whole;
    afresh->checkpoint_count = 0;
    afresh->stack.agreed = 0;
    walk_afresh = walk;
    walk_afresh.kept = 0;
    pw_join(afresh, &walk_afresh, 0, leaf, inner);
}

static void
expect_the_same(void)
{
    const pw_joined_stack *stack = &room->stack, *other = &afresh->stack;
    EQUAL(other->count, stack->count);
    EQUAL(afresh->guessed, room->guessed);
    EQUAL(afresh->runs, room->runs);
    for (uint32_t i = 0; i < stack->count; i++) {
        unit_note("frame %u of %u", i, stack->count);
        EQUAL(other->frames[i], stack->frames[i]);
        EQUAL(other->owners[i], stack->owners[i]);
        EQUAL(other->lines[i], stack->lines[i]);
    }
}

/* The drain has these frames; a full ring loses the others. */
static void
tell(bool is_full)
{
    pw_joined_stack *stack = &room->stack;
    CHECK(stack->agreed <= stack->count);
    CHECK(stack->agreed <= told.count);
    for (uint32_t i = 0; i < stack->agreed; i++) {
        EQUAL(told.frames[i], stack->frames[i]);
        EQUAL(told.lines[i], stack->lines[i]);
    }
    if (is_full) return;
    for (uint32_t i = stack->agreed; i < stack->count; i++) {
        told.frames[i] = stack->frames[i];
        told.lines[i] = stack->lines[i];
    }
    told.count = stack->agreed = stack->count;
}

static uint64_t resumed;

static void
turn(uint32_t most)
{
    if (unit_random(4)) change_control_frames(most);
    uint32_t kept = change_natives(most);
    /* within a collection the control frames are those of its beginning */
    bool collects = walk.kept == walk.depth && !walk.cut && unit_random(2);
    uint32_t inner = collects ? unit_random(room->count + 1) : 0;
    VALUE leaf = collects && unit_random(2) ? PW_FRAME_MARKING : 0;
    uint32_t checkpoints = room->checkpoint_count;
    join_afresh(leaf, inner);
    pw_join(room, &walk, kept, leaf, inner);
    EQUAL(walk.depth, walk.kept);
    expect_the_same();
    if (unit_random(8) == 0) { /* as before the marking */
        pw_joined_stack *stack = &room->stack;
        while (stack->count && pw_frame_is_native(stack->frames[stack->count - 1])) stack->count--;
        if (stack->agreed > stack->count) stack->agreed = stack->count;
    }
    tell(unit_random(10) == 0);
    resumed += checkpoints > 1 && room->checkpoint_count > 1;
}

TEST(joined_again_as_from_the_root)
{
    uint32_t rounds = unit_rounds(40000);
    begin();
    for (uint32_t i = 0; i < rounds; i++) {
        unit_note("turn %u", i);
        turn(40);
    }
    CHECK(resumed > rounds / 4);
    end();
}

TEST(deep_stacks_lose_frames_at_the_root)
{
    begin();
    for (uint32_t i = 0; i < unit_rounds(300); i++) {
        unit_note("turn %u", i);
        turn(DEEP - 1);
    }
    end();
}

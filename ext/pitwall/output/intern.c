#include "output/intern.h"
#include "tools/fnv.h"
#include "vm/stack_walk.h"

static uint64_t
mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

static void *
zeroed(size_t n, size_t size)
{
    return pw_noted(calloc(n, size));
}

static void release(pw_intern *t);

static bool
allocate(pw_intern *t)
{
    t->frame_slots = 1u << 12;
    t->frame_index = zeroed(t->frame_slots, sizeof(uint32_t));
    t->frame_capacity = 1u << 10;
    t->frames = zeroed(t->frame_capacity, sizeof(pw_frame_entry));
    t->node_slots = 1u << 13;
    t->node_index = zeroed(t->node_slots, sizeof(uint32_t));
    t->node_capacity = 1u << 12;
    t->nodes = zeroed(t->node_capacity, sizeof(pw_node_entry));
    t->ids_before = t->next_node_id - 1;
    t->string_slots = 1u << 12;
    t->strings = zeroed(t->string_slots, sizeof(*t->strings));
    t->arena_size = t->arena_capacity = 0;
    t->arena = NULL;
    t->frame_count = t->node_count = t->string_count = t->unresolved_from = t->nameless_native = 0;
    if (!t->frame_index || !t->frames || !t->node_index || !t->nodes || !t->strings) return false;
    /* This frame is named early, because it may be needed after naming has finished. */
    pw_intern_frame(t, PW_FRAME_NOT_SAMPLED, 0);
    return true;
}

static void
release(pw_intern *t)
{
    free(t->frame_index);
    free(t->frames);
    free(t->node_index);
    free(t->nodes);
    free(t->strings);
    free(t->arena);
}

bool
pw_intern_init(pw_intern *t)
{
    *t = (pw_intern){.next_frame_id = 1, .next_node_id = 1, .next_string_id = 1};
    return allocate(t);
}

void
pw_intern_free(pw_intern *t)
{
    release(t);
    pw_buffer_free(&t->new_parents);
    pw_buffer_free(&t->new_frames);
    pw_buffer_free(&t->new_lines);
    pw_buffer_free(&t->new_string_lengths);
    pw_buffer_free(&t->new_string_bytes);
    *t = (pw_intern){0};
}

bool
pw_intern_reset(pw_intern *t, pw_intern *before)
{
    *before = *t;
    if (allocate(t)) return true;
    release(t);
    *t = *before;
    return false;
}


bool
pw_intern_full(const pw_intern *t)
{
    return t->node_count >= PW_MAX_NODES || t->frame_count >= PW_MAX_FRAMES || t->string_count >= PW_MAX_STRINGS;
}

static void
grow_frame_index(pw_intern *t)
{
    uint32_t *larger = zeroed((size_t)t->frame_slots * 2, sizeof(uint32_t));
    if (!larger) return;
    t->frame_slots *= 2;
    free(t->frame_index);
    t->frame_index = larger;
    for (uint32_t i = 0; i < t->frame_count; i++) {
        uint32_t at = (uint32_t)mix(t->frames[i].frame) & (t->frame_slots - 1);
        while (t->frame_index[at]) at = (at + 1) & (t->frame_slots - 1);
        t->frame_index[at] = i + 1;
    }
}

static pw_frame_entry *
find_frame(const pw_intern *t, VALUE frame, uint32_t *at)
{
    *at = (uint32_t)mix(frame) & (t->frame_slots - 1);
    for (uint32_t i; (i = t->frame_index[*at]) != 0; *at = (*at + 1) & (t->frame_slots - 1)) {
        if (t->frames[i - 1].frame == frame) return &t->frames[i - 1];
    }
    return NULL;
}

VALUE
pw_intern_owner(const pw_intern *t, VALUE frame)
{
    uint32_t at;
    const pw_frame_entry *entry = find_frame(t, frame, &at);
    return !entry ? 0 : entry->waiting ? PW_DOUBTFUL : entry->owner;
}

/* `at`: the entry's place in the index. */
static void
append_frame(pw_intern *t, pw_frame_entry entry, uint32_t at)
{
    if (t->frame_count == t->frame_capacity) {
        pw_frame_entry *larger = pw_noted(realloc(t->frames, (size_t)t->frame_capacity * 2 * sizeof(pw_frame_entry)));
        if (!larger) return;
        t->frames = larger;
        t->frame_capacity *= 2;
    }
    t->frames[t->frame_count++] = entry;
    t->frame_index[at] = t->frame_count;
    if (entry.resolved && t->unresolved_from == t->frame_count - 1) t->unresolved_from++;
    if (t->frame_count * 2 > t->frame_slots) grow_frame_index(t);
}

/* Moves the frame to the end of the list, to be named there. Leaves an empty, resolved entry in the old place. */
static void
end_waiting(pw_intern *t, pw_frame_entry *entry, uint32_t at, VALUE owner)
{
    if (pw_lacks_memory()) return; /* the frame stays where it is */
    pw_frame_entry again = {.frame = entry->frame, .owner = owner, .id = entry->id, .waited = owner == PW_DOUBTFUL};
    *entry = (pw_frame_entry){.resolved = true};
    append_frame(t, again, at);
}

static void
tell_owner(pw_intern *t, pw_frame_entry *entry, uint32_t at, VALUE owner)
{
    if (entry->resolved || RB_SPECIAL_CONST_P(owner)) return;
    if (entry->waiting) end_waiting(t, entry, at, owner);
    else if (RB_SPECIAL_CONST_P(entry->owner)) entry->owner = owner;
}

void
pw_intern_carry_nameless(pw_intern *t, const pw_intern *before)
{
    for (uint32_t i = before->unresolved_from; i < before->frame_count && t->frame_count < PW_MAX_FRAMES; i++) {
        const pw_frame_entry *old = &before->frames[i];
        uint32_t at;
        pw_frame_entry *there = old->resolved ? NULL : find_frame(t, old->frame, &at);
        if (there) there->id = old->id; /* no node has the new number yet */
        else if (!old->resolved && !pw_lacks_memory()) append_frame(t, *old, at);
    }
}

void
pw_intern_forget(pw_intern *before)
{
    release(before);
}

uint32_t
pw_intern_frame(pw_intern *t, VALUE frame, VALUE owner)
{
    uint32_t at;
    pw_frame_entry *entry = find_frame(t, frame, &at);
    if (entry) {
        uint32_t id = entry->id;
        tell_owner(t, entry, at, owner);
        return id;
    }
    if (pw_lacks_memory()) return 0; /* a table that cannot grow must not get full */
    pw_frame_entry fresh = {.frame = frame, .owner = owner, .id = t->next_frame_id++,
                            .resolved = pw_frame_is_native(frame)};
    append_frame(t, fresh, at);
    return t->next_frame_id - 1;
}

void
pw_intern_tell_owner(pw_intern *t, VALUE frame, VALUE owner)
{
    uint32_t at;
    pw_frame_entry *entry = find_frame(t, frame, &at);
    if (entry) tell_owner(t, entry, at, owner);
}

bool
pw_intern_end_waiting(pw_intern *t)
{
    bool any = false;
    for (uint32_t i = 0, n = t->unresolved_from; i < n; i++) {
        uint32_t at;
        if (!t->frames[i].waiting || !find_frame(t, t->frames[i].frame, &at)) continue;
        end_waiting(t, &t->frames[i], at, PW_DOUBTFUL);
        any = true;
    }
    return any;
}

static uint32_t
node_hash(uint32_t parent, VALUE frame, uint32_t line)
{
    return (uint32_t)mix((frame ^ (uint64_t)parent << 32 ^ (uint64_t)line << 20) * 0x9e3779b97f4a7c15u);
}

static void
grow_node_index(pw_intern *t)
{
    uint32_t *larger = zeroed((size_t)t->node_slots * 2, sizeof(uint32_t));
    if (!larger) return;
    t->node_slots *= 2;
    free(t->node_index);
    t->node_index = larger;
    for (uint32_t i = 0; i < t->node_count; i++) {
        const pw_node_entry *n = &t->nodes[i];
        uint32_t at = node_hash(n->parent, n->frame, n->line) & (t->node_slots - 1);
        while (larger[at]) at = (at + 1) & (t->node_slots - 1);
        larger[at] = i + 1;
    }
}

static bool
grow_nodes(pw_intern *t)
{
    pw_node_entry *larger = pw_noted(realloc(t->nodes, (size_t)t->node_capacity * 2 * sizeof(pw_node_entry)));
    if (!larger) return false;
    t->nodes = larger;
    t->node_capacity *= 2;
    return true;
}

static inline bool
is_node(const pw_node_entry *n, uint32_t parent, VALUE frame, uint32_t line)
{
    return n->parent == parent && n->frame == frame && n->line == line;
}

uint32_t
pw_intern_new_node(pw_intern *t, uint32_t parent, VALUE frame, VALUE owner, uint32_t line)
{
    uint32_t id = t->next_node_id++;
    if (t->new_nodes++ == 0) t->first_new_node = id;
    pw_buffer_int(&t->new_parents, id - parent);
    pw_buffer_int(&t->new_frames, pw_intern_frame(t, frame, owner));
    pw_buffer_int(&t->new_lines, line);
    return id;
}

uint32_t
pw_intern_node(pw_intern *t, uint32_t parent, VALUE frame, VALUE owner, uint32_t line)
{
    /* Often it is the node that was made right after its parent. It lies beside the parent. The index is large, and a
     * look into it waits for memory. */
    uint32_t beside = parent - t->ids_before;
    if (beside < t->node_count && is_node(&t->nodes[beside], parent, frame, line)) return t->nodes[beside].id;
    uint32_t at = node_hash(parent, frame, line) & (t->node_slots - 1);
    for (uint32_t i; (i = t->node_index[at]) != 0; at = (at + 1) & (t->node_slots - 1)) {
        if (is_node(&t->nodes[i - 1], parent, frame, line)) return t->nodes[i - 1].id;
    }
    if (pw_lacks_memory() || (t->node_count == t->node_capacity && !grow_nodes(t))) return parent;
    uint32_t id = pw_intern_new_node(t, parent, frame, owner, line);
    t->nodes[t->node_count++] = (pw_node_entry){frame, parent, line, id};
    t->node_index[at] = t->node_count;
    if (t->node_count * 2 > t->node_slots) grow_node_index(t);
    return id;
}

static uint64_t
string_hash(const char *bytes, size_t length)
{
    return mix(pw_fnv(PW_FNV_START, bytes, length));
}

static void
grow_strings(pw_intern *t)
{
    struct pw_string_slot *old = t->strings, *larger = zeroed((size_t)t->string_slots * 2, sizeof(*t->strings));
    if (!larger) return;
    uint32_t slots = t->string_slots;
    t->string_slots *= 2;
    t->strings = larger;
    for (uint32_t i = 0; i < slots; i++) {
        if (!old[i].id) continue;
        uint32_t at = (uint32_t)string_hash(t->arena + old[i].offset, old[i].length) & (t->string_slots - 1);
        while (t->strings[at].id) at = (at + 1) & (t->string_slots - 1);
        t->strings[at] = old[i];
    }
    free(old);
}

uint32_t
pw_intern_string(pw_intern *t, const char *bytes, size_t length)
{
    if (length == 0) return 0;
    if (length > 4096) length = 4096; /* eval'ed "paths" can be whole templates */
    uint32_t at = (uint32_t)string_hash(bytes, length) & (t->string_slots - 1);
    for (; t->strings[at].id; at = (at + 1) & (t->string_slots - 1)) {
        struct pw_string_slot *s = &t->strings[at];
        if (s->length == length && memcmp(t->arena + s->offset, bytes, length) == 0) return s->id;
    }
    if (pw_lacks_memory()) return 0;
    if (t->arena_size + length > t->arena_capacity) {
        size_t capacity = t->arena_capacity;
        while (t->arena_size + length > capacity) capacity = capacity ? capacity * 2 : 1u << 16;
        char *larger = pw_noted(realloc(t->arena, capacity));
        if (!larger) return 0;
        t->arena = larger;
        t->arena_capacity = capacity;
    }
    memcpy(t->arena + t->arena_size, bytes, length);
    uint32_t id = t->next_string_id++;
    t->strings[at] = (struct pw_string_slot){(uint32_t)t->arena_size, (uint32_t)length, id};
    t->arena_size += length;
    if (t->new_strings++ == 0) t->first_new_string = id;
    pw_buffer_int(&t->new_string_lengths, length);
    pw_buffer_put(&t->new_string_bytes, bytes, length);
    if (++t->string_count * 2 > t->string_slots) grow_strings(t);
    return id;
}

#include "collectors/allocations/sites.h"
#include "tools/quietly.h"
#include "tools/readable.h"
#include "output/output.h"
#include "session/session.h"
#include "tools/clock.h"
#include <string.h>

enum { BLOCK_BITS = 10, BLOCK = 1 << BLOCK_BITS, BATCH = 64 };

pw_site_cached pw_site_cache[PW_SITE_CACHE];

/* A class or a frame that keys of sites refer to. */
typedef struct {
    VALUE object; /* 0: freed */
    uint32_t first_site, name;
    bool is_class, anonymous;
} watched;

/* A hash table with open addressing. Slots hold numbers; 0: empty. The number of a forgotten key stays until the table
 * grows. */
typedef struct { uint32_t *slots, size, used; } number_index;

static struct {
    pw_site *blocks[PW_MAX_SITES / BLOCK];
    _Atomic uint32_t site_count; /* the drain reads sites up to this id */
    watched *watch;
    uint32_t watch_count, watch_room, unnamed_from;
    number_index by_key, by_object;
} state;

static uint64_t hash_of_object(VALUE object) { return object * 0x9e3779b97f4a7c15u; }

static bool
grow(number_index *index, uint64_t (*hash)(uint32_t number), uint32_t count)
{
    uint32_t size = index->size ? index->size : 1024;
    while (size < count * 4) size *= 2;
    uint32_t *slots = calloc(size, sizeof(uint32_t));
    if (!slots) return false;
    free(index->slots);
    *index = (number_index){slots, size, 0};
    for (uint32_t n = 1; n <= count; n++) {
        uint64_t h = hash(n);
        if (!h) continue;
        uint32_t at = (uint32_t)(h >> 32) & (size - 1);
        while (slots[at]) at = (at + 1) & (size - 1);
        slots[at] = n;
        index->used++;
    }
    return true;
}

static void
put(number_index *index, uint64_t hash, uint32_t number)
{
    uint32_t at = (uint32_t)(hash >> 32) & (index->size - 1);
    while (index->slots[at]) at = (at + 1) & (index->size - 1);
    index->slots[at] = number;
    index->used++;
}

static bool full(const number_index *index) { return (index->used + 1) * 2 > index->size; }

uint32_t pw_sites_count(void) { return atomic_load_explicit(&state.site_count, memory_order_acquire); }

pw_site *pw_site_at(uint32_t id) { return &state.blocks[(id - 1) >> BLOCK_BITS][(id - 1) & (BLOCK - 1)]; }

static uint64_t
hash_of_site(uint32_t id)
{
    const pw_site *s = pw_site_at(id);
    return s->place ? pw_site_hash(s->place, s->klass) : 0;
}

static uint64_t
hash_of_watched(uint32_t number)
{
    return state.watch[number - 1].object ? hash_of_object(state.watch[number - 1].object) : 0;
}

pw_site *
pw_site_search(VALUE place, VALUE klass)
{
    uint32_t at = (uint32_t)(pw_site_hash(place, klass) >> 32) & (state.by_key.size - 1);
    for (uint32_t id; (id = state.by_key.slots[at]) != 0; at = (at + 1) & (state.by_key.size - 1)) {
        pw_site *s = pw_site_at(id);
        if (s->place == place && s->klass == klass) return s;
    }
    return NULL;
}

static watched *
find_watched(VALUE object)
{
    uint32_t at = (uint32_t)(hash_of_object(object) >> 32) & (state.by_object.size - 1);
    for (uint32_t n; (n = state.by_object.slots[at]) != 0; at = (at + 1) & (state.by_object.size - 1)) {
        if (state.watch[n - 1].object == object) return &state.watch[n - 1];
    }
    return NULL;
}

static watched *
watch_over(VALUE object, bool is_class)
{
    watched *w = find_watched(object);
    if (w) return w;
    if (state.watch_count == state.watch_room) {
        uint32_t room = state.watch_room ? state.watch_room * 2 : 256;
        watched *larger = realloc(state.watch, room * sizeof(*state.watch));
        if (!larger) return NULL;
        state.watch = larger;
        state.watch_room = room;
    }
    if (full(&state.by_object) && !grow(&state.by_object, hash_of_watched, state.watch_count)) return NULL;
    w = &state.watch[state.watch_count++];
    *w = (watched){.object = object, .is_class = is_class};
    put(&state.by_object, hash_of_object(object), state.watch_count);
    return w;
}

static pw_site *
new_row(void)
{
    uint32_t id = pw_sites_count() + 1;
    if (id > PW_MAX_SITES) return NULL;
    pw_site **block = &state.blocks[(id - 1) >> BLOCK_BITS];
    if (!*block && !(*block = calloc(BLOCK, sizeof(pw_site)))) return NULL;
    pw_site *s = pw_site_at(id);
    s->id = id;
    return s;
}

/* Lets the drain read the site from now on. */
static void publish(const pw_site *s) { atomic_store_explicit(&state.site_count, s->id, memory_order_release); }

bool
pw_sites_start(void)
{
    if (!grow(&state.by_key, hash_of_site, 0) || !grow(&state.by_object, hash_of_watched, 0)) return false;
    for (int i = PW_SITE_VM; i < PW_SITE_FIRST; i++) {
        pw_site *s = new_row();
        if (!s) return false;
        publish(s);
    }
    return true;
}

static pw_site *
enter(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame)
{
    pw_site *other = pw_site_at(PW_SITE_OTHER);
    if (full(&state.by_key) && !grow(&state.by_key, hash_of_site, pw_sites_count())) return other;
    if ((klass && !watch_over(klass, true)) || (frame && !watch_over(frame, false))) return other;
    watched *of_class = klass ? find_watched(klass) : NULL, *of_frame = frame ? find_watched(frame) : NULL;
    pw_site *s = new_row();
    if (!s) return other;
    s->place = place;
    s->klass = klass;
    s->type = type;
    s->node = node;
    if (of_class) {
        s->name = of_class->name;
        s->next_of_class = of_class->first_site;
        of_class->first_site = s->id;
    }
    if (of_frame) {
        s->frame = (uint32_t)(of_frame - state.watch) + 1;
        s->next_of_frame = of_frame->first_site;
        of_frame->first_site = s->id;
    }
    publish(s);
    put(&state.by_key, pw_site_hash(place, klass), s->id);
    return s;
}

pw_site *
pw_site_enter(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame)
{
    pthread_mutex_lock(&pw_current.lock);
    pw_site *site = enter(place, klass, type, node, frame);
    pthread_mutex_unlock(&pw_current.lock);
    return site;
}

pw_site *
pw_site_beside(const pw_site *site, VALUE klass)
{
    pw_site *s = pw_site_find(site->place, klass);
    return s ? s : pw_site_enter(site->place, klass, site->type, site->node,
                                 site->frame ? state.watch[site->frame - 1].object : 0);
}

static void
forget(watched *w)
{
    w->object = 0;
    for (uint32_t id = w->first_site; id;) {
        pw_site *s = pw_site_at(id);
        id = w->is_class ? s->next_of_class : s->next_of_frame;
        pw_site_cached *cached = &pw_site_cache[pw_site_hash(s->place, s->klass) >> 51];
        if (cached->site == s) *cached = (pw_site_cached){0};
        s->place = 0;
    }
}

void
pw_sites_forget_object(VALUE object)
{
    watched *w = find_watched(object);
    if (!w) return;
    pthread_mutex_lock(&pw_current.lock);
    forget(w);
    pthread_mutex_unlock(&pw_current.lock);
}

void
pw_sites_follow_moves(void)
{
    for (uint32_t i = 0; i < state.watch_count; i++) {
        watched *w = &state.watch[i];
        /* freed but not reported, for example by a collection during which a Ractor ended (gc.c) */
        if (w->object && !pw_readable(w->object)) forget(w);
        VALUE to = w->object ? rb_gc_location(w->object) : 0;
        if (to == w->object) continue;
        w->object = to;
        for (uint32_t id = w->is_class ? w->first_site : 0; id; id = pw_site_at(id)->next_of_class) {
            pw_site_at(id)->klass = to;
        }
    }
    memset(pw_site_cache, 0, sizeof pw_site_cache);
    /* Nothing is added, so the tables are large enough. Without memory for new tables, the old ones are cleared, and
     * places are entered again. */
    if (!grow(&state.by_key, hash_of_site, pw_sites_count())) {
        memset(state.by_key.slots, 0, state.by_key.size * sizeof(uint32_t));
    }
    if (!grow(&state.by_object, hash_of_watched, state.watch_count)) {
        memset(state.by_object.slots, 0, state.by_object.size * sizeof(uint32_t));
    }
}

bool
pw_sites_unnamed(void)
{
    return state.unnamed_from < state.watch_count;
}

/* Marks a class only until the class has a name. After that the program may let Ruby free the class. */
void
pw_sites_mark(bool all)
{
    for (uint32_t i = all ? 0 : state.unnamed_from; i < state.watch_count; i++) {
        if (state.watch[i].object && (all || state.watch[i].is_class)) rb_gc_mark(state.watch[i].object);
    }
}

static VALUE
class_name(VALUE klass)
{
    if (!RB_TYPE_P(klass, T_CLASS) && !RB_TYPE_P(klass, T_MODULE)) return Qnil;
    return rb_mod_name(RB_TYPE_P(klass, T_CLASS) ? rb_class_real(klass) : klass);
}

static void
name_class(uint32_t at, VALUE klass)
{
    VALUE name;
    pw_attempt(class_name, klass, &name);
    static const char none[] = "(anonymous class)";
    bool named = RB_TYPE_P(name, T_STRING);

    pthread_mutex_lock(&pw_current.lock);
    watched *w = &state.watch[at];
    w->anonymous = !named;
    w->name = pw_intern_string(&pw_out.tables, named ? RSTRING_PTR(name) : none,
                               named ? (size_t)RSTRING_LEN(name) : sizeof none - 1);
    for (uint32_t id = w->first_site; id; id = pw_site_at(id)->next_of_class) pw_site_at(id)->name = w->name;
    pthread_mutex_unlock(&pw_current.lock);
    RB_GC_GUARD(name);
}

void
pw_sites_name(bool again)
{
    uint32_t i = again ? 0 : state.unnamed_from;
    for (;; i++) {
        pthread_mutex_lock(&pw_current.lock); /* other Ractors' hooks may add sites meanwhile */
        bool more = i < state.watch_count, is_new = i >= state.unnamed_from;
        watched w = more ? state.watch[i] : (watched){0};
        pthread_mutex_unlock(&pw_current.lock);
        if (!more) break;
        VALUE klass = w.object;
        if (w.is_class && klass && (is_new || w.anonymous)) name_class(i, klass);
        if (is_new) state.unnamed_from = i + 1;
        RB_GC_GUARD(klass);
    }
}

void
pw_sites_write(void)
{
    pw_buffer columns[4] = {{0}};
    uint32_t n = 0, count = pw_sites_count();
    for (uint32_t id = 1; id <= count; id++) {
        pw_site *s = pw_site_at(id);
        if (s->told && s->told_name == s->name) continue;
        s->told = true;
        s->told_name = s->name;
        uint64_t values[4] = {id, s->node, s->type, s->name};
        pw_buffer_row(columns, values, 4);
        n++;
    }
    if (n) pw_writer_table(&pw_out.writer, "SITE", 1, (uint64_t[]){n}, 4, columns);
    pw_buffers_free(columns, 4);
}

void
pw_sites_free(void)
{
    for (uint32_t i = 0; i < PW_MAX_SITES / BLOCK; i++) {
        free(state.blocks[i]);
        state.blocks[i] = NULL;
    }
    atomic_store(&state.site_count, 0);
    free(state.watch);
    free(state.by_key.slots);
    free(state.by_object.slots);
    state.watch = NULL;
    state.watch_count = state.watch_room = state.unnamed_from = 0;
    state.by_key = state.by_object = (number_index){0};
    memset(pw_site_cache, 0, sizeof pw_site_cache);
}

#include "collectors/allocations/ends.h"
#include "collectors/allocations/charges.h"
#include "collectors/allocations/duplicates.h"
#include "collectors/allocations/growth.h"
#include "collectors/allocations/holders.h"
#include "collectors/allocations/living.h"
#include "sampling/gc.h"
#include <ruby/ractor.h>

enum { OLD_AGE = 3 };

static struct {
    const rb_data_type_t *set_type; /* type of Ruby's built-in sets; NULL: none */
} state;

void
pw_settle_age(VALUE object, uint32_t *word)
{
    if (pw_age_of(*word) > PW_SETTLED) {
        *word = (*word & ~(uint32_t)PW_BIRTH_MASK) | ((pw_alloc.collections - PW_SETTLED) & PW_BIRTH_MASK);
    }
}

static inline bool
is_set(VALUE object)
{
    return state.set_type && RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) == state.set_type;
}

/* Bytes of an object outside its slot. During sweeping, the objects that an object refers to may have been freed. So
 * only the memory that Ruby's own types own directly is asked for. */
static size_t
bytes_beyond_slot(VALUE object, size_t slot, bool swept)
{
    VALUE flags = RBASIC(object)->flags;
    bool more = pw_other_ivars_may_have_more(flags);
    switch (flags & RUBY_T_MASK) {
      case T_FLOAT: case T_RATIONAL: case T_COMPLEX: break;
      case T_STRING: more |= pw_string_may_have_more(flags); break;
      case T_ARRAY: more |= pw_array_may_have_more(flags); break;
      case T_OBJECT: more |= pw_plain_object_may_have_more(flags); break;
      case T_DATA: more = !swept || is_set(object); break;
      default: more = true;
    }
    if (!more) return 0;
    size_t all = pw_object_bytes(object);
    return all > slot ? all - slot : 0;
}

/* Up to 3.4 Ruby reports neither other Ractors' collections nor the objects that these collections free. `telling`: a
 * collection begins now. */
bool
pw_all_collections_seen(bool telling)
{
    return rb_gc_count() - pw_alloc.gc_count_before == pw_alloc.collections + (telling ? 1 : 0);
}

/* The last collection has been swept, and the next collection has not begun to mark. So an object with a word lives,
 * unless Ruby has not reported all ends. The program may be in the middle of changing an object. So only objects of
 * the simplest types are asked for more than their slot. */
void
pw_count_birth(VALUE object, uint32_t *word)
{
    uint32_t age = pw_age_of(*word), site = *word >> PW_BIRTH_BITS;
    if (age == 0 || !pw_growth_born(site, age)) return;
    pw_site *s = pw_site_at(site);
    bool simple = s->type == T_STRING || s->type == T_ARRAY || s->type == T_HASH || s->type == T_OBJECT;
    size_t slot = s->slot;
    if (simple && !pw_alloc.ends_missed && pw_all_collections_seen(true) &&
        (RBASIC(object)->flags & RUBY_T_MASK) == s->type) {
        slot = pw_slot_bytes(object);
        pw_growth_bytes(site, slot + bytes_beyond_slot(object, slot, true));
    }
    else pw_growth_bytes(site, slot);
}

/* A collection begins: ends the point of the previous collection. */
void
pw_end_point(void)
{
    pw_growth_end_point();
    if (!pw_growth_births_due()) return;
    if (pw_growth_begin_births(pw_alloc.collections)) pw_living_each(pw_count_birth);
    pw_growth_end_births();
}

void
pw_end_unseen(uint32_t word)
{
    pw_site *s = pw_site_at(word >> PW_BIRTH_BITS);
    uint32_t age = pw_age_of(word);
    if (!(pw_site_get(&s->freed) + pw_site_get(&s->retained)) || age < s->min_age) {
        atomic_store_explicit(&s->min_age, age, memory_order_relaxed);
    }
    if (age > s->max_age) atomic_store_explicit(&s->max_age, age, memory_order_relaxed);
    pw_site_add_to(&s->freed, 1);
    pw_site_add_to(&s->total_age, age);
    pw_site_add_to(&s->slot_bytes, PW_SLOT_UNIT);
    pw_site_add_to(&s->memsize, PW_SLOT_UNIT);
}

void
pw_end_left_over(VALUE object, uint32_t *word)
{
    pw_end_unseen(*word);
    *word = 0;
}

/* Many arrays and strings are created hidden, without a class, and shown to the program later. Moves such an object to
 * the site of its class. When an object is swept, its class may have been freed. Only Ruby's constant classes below
 * are safe then. */
static pw_site *
site_when_shown(pw_site *s, VALUE klass, bool swept)
{
    if (!s->place || !klass ||
        (swept && klass != rb_cString && klass != rb_cArray && klass != rb_cHash && klass != rb_cObject)) {
        return s;
    }
    pw_site *shown = pw_site_beside(s, klass);
    atomic_store_explicit(&s->count, pw_site_get(&s->count) - 1, memory_order_relaxed);
    pw_site_add_to(&shown->count, 1);
    return shown;
}

/* `age` does not count Pitwall's own collection at the end. */
static void
add_object(pw_site *s, VALUE object, bool swept, uint32_t age)
{
    if (!s->klass) s = site_when_shown(s, RBASIC(object)->klass, swept);
    size_t slot = pw_slot_bytes(object), beyond = bytes_beyond_slot(object, slot, swept);
    uint64_t ended = pw_site_get(&s->freed) + pw_site_get(&s->retained);
    pw_site_add_to(swept ? &s->freed : &s->retained, 1);
    /* The age of a swept object includes the collection that frees it, which the object has not survived. */
    if (age >= OLD_AGE + (swept ? 1 : 0)) pw_site_add_to(&s->old, 1);
    pw_site_add_to(&s->total_age, age);
    if (!ended || age < s->min_age) atomic_store_explicit(&s->min_age, age, memory_order_relaxed);
    if (age > s->max_age) atomic_store_explicit(&s->max_age, age, memory_order_relaxed);
    pw_site_add_to(&s->slot_bytes, slot);
    pw_site_add_to(&s->memsize, slot + beyond);
    if (!swept) {
        pw_site_add_to(&s->retained_bytes, slot + beyond);
        if (pw_alloc.counting_births && pw_growth_born(s->id, age + 1)) pw_growth_bytes(s->id, slot + beyond);
        if (pw_alloc.counting_births && pw_holders_wanted()) pw_holders_see(s->id, object);
    }
    /* The malloc'ed memory of swept T_DATA is unknown, so count every such object. */
    if (swept && (beyond || s->type == T_DATA)) pw_site_add_to(&s->mallocs, 1);
    if (pw_alloc.digesting && s->type == T_STRING && s->klass) pw_duplicates_add(object, s->id, slot + beyond, swept);
}

void
pw_object_freed(VALUE unused, const pw_trace_arg *arg)
{
    if (!pw_alloc.active) return;
    VALUE object = arg->data;
    uint32_t type = (uint32_t)(RBASIC(object)->flags & RUBY_T_MASK);
    if (type == T_IMEMO || type == T_CLASS || type == T_MODULE) pw_sites_forget_object(object);
    else if (type == T_DATA && RBASIC(object)->klass == rb_cRactor) {
        pw_alloc.ends_missed = true;
        pw_gc_ask_again();
    }
    uint32_t word = pw_living_take(object);
    if (!word) return;
    pw_site *s = pw_site_at(word >> PW_BIRTH_BITS);
    uint32_t age = pw_age_of(word);
    uint32_t *young = &s->young[word & 3];
    if (age == 0) ++*young;
    else if (age <= PW_YOUNG_COLLECTIONS && *young) --*young;
    add_object(s, object, true, age);
}

int
pw_retained_page(void *from, void *to, size_t stride, void *unused)
{
    for (VALUE object = (VALUE)from; object < (VALUE)to; object += stride) {
        uint32_t *at = pw_living_at(object);
        if (!at || !*at) continue;
        uint32_t type = (uint32_t)(RBASIC(object)->flags & RUBY_T_MASK);
        if (type == T_NONE || type == PW_T_MOVED || type == PW_T_ZOMBIE) continue;
        uint32_t age = pw_age_of(*at); /* includes Pitwall's own collection at the end */
        add_object(pw_site_at(*at >> PW_BIRTH_BITS), object, false, age ? age - 1 : 0);
        *at = 0;
    }
    return 0;
}

void
pw_end_last_point(void)
{
    for (uint32_t id = 1; id <= pw_sites_count(); id++) pw_growth_living(id, pw_site_get(&pw_site_at(id)->retained));
    pw_growth_end_point();
    pw_growth_end_births();
    pw_alloc.counting_births = false;
}

void pw_ends_init(void) { state.set_type = pw_set_type(); }

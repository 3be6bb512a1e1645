#include "collectors/caches/open_calls.h"
#include "vm/stack_walk.h"
#include <stdatomic.h>
#include <string.h>

enum { MOST = 256 };

static struct {
    _Atomic(const VALUE *) ec; /* NULL: free */
    const VALUE *cfp;
    VALUE definition; /* of the frame's method. Another method at this place: the fiber was left, and is gone. */
    uint64_t serial;
    uint32_t noted;
    uint64_t increase[PW_VM_COUNTERS];
} calls[MOST];

bool
pw_call_here(pw_call_place *place)
{
    const VALUE *ec = pw_walk_context_of(rb_thread_current());
    if (!ec) return false;
    *place = (pw_call_place){ec, (const VALUE *)ec[PW_EC_CFP]};
    return true;
}

/* What identifies the method of a frame of C code; 0: not known. It does not move. */
static VALUE
definition_at(pw_call_place place)
{
    pw_frame_seen seen = {0};
    if (!pw_walk_look(place.ec, place.cfp, &seen) || !seen.frame || pw_frame_is_iseq(seen.frame)) return 0;
    return ((const VALUE *)seen.frame)[PW_ME_DEF];
}

/* Gives up calls of fibers that were left for good: no code of theirs runs any more, not even `ensure`. A stack grows
 * down, so calls of this context at or below a new one have ended. */
static void
close_left(pw_call_place place)
{
    for (int i = 0; i < MOST; i++) {
        if (atomic_load_explicit(&calls[i].ec, memory_order_relaxed) != place.ec || calls[i].cfp > place.cfp) continue;
        atomic_store(&calls[i].ec, NULL);
    }
}

/* Makes room: gives up the oldest call of other contexts. */
static void
close_oldest(const VALUE *except)
{
    int oldest = -1;
    for (int i = 0; i < MOST; i++) {
        if (atomic_load_explicit(&calls[i].ec, memory_order_relaxed) == except) continue;
        if (oldest < 0 || calls[i].serial < calls[oldest].serial) oldest = i;
    }
    if (oldest >= 0) atomic_store(&calls[oldest].ec, NULL);
}

static int
open_one(pw_call_place place)
{
    static _Atomic uint64_t serials;
    for (int i = 0; i < MOST; i++) {
        const VALUE *none = NULL;
        if (atomic_load_explicit(&calls[i].ec, memory_order_relaxed)) continue;
        if (!atomic_compare_exchange_strong(&calls[i].ec, &none, place.ec)) continue;
        calls[i].cfp = place.cfp;
        calls[i].definition = definition_at(place);
        calls[i].serial = atomic_fetch_add(&serials, 1);
        calls[i].noted = 0;
        memset(calls[i].increase, 0, sizeof calls[i].increase);
        return i;
    }
    return -1;
}

int
pw_call_open(pw_call_place place)
{
    close_left(place);
    int number = open_one(place);
    if (number >= 0) return number;
    close_oldest(place.ec);
    return open_one(place);
}

static bool
is_at(int i, pw_call_place place)
{
    return atomic_load_explicit(&calls[i].ec, memory_order_relaxed) == place.ec && calls[i].cfp == place.cfp;
}

uint32_t
pw_call_close(int number, pw_call_place place, uint64_t increase[PW_VM_COUNTERS])
{
    if (number < 0 || !is_at(number, place)) return 0;
    uint32_t noted = calls[number].noted;
    for (int i = 0; i < PW_VM_COUNTERS; i++) increase[i] += calls[number].increase[i];
    atomic_store(&calls[number].ec, NULL);
    return noted;
}

bool
pw_call_adds(pw_call_place place, const uint64_t increase[PW_VM_COUNTERS])
{
    for (int i = 0; i < MOST; i++) {
        if (!is_at(i, place) || calls[i].definition != definition_at(place)) continue;
        for (int at = 0; at < PW_VM_COUNTERS; at++) calls[i].increase[at] += increase[at];
        return true;
    }
    return false;
}

bool
pw_call_is_open(pw_call_place place)
{
    return pw_call_adds(place, (const uint64_t[PW_VM_COUNTERS]){0});
}

void
pw_call_noted(pw_call_place place)
{
    for (int i = 0; i < MOST; i++) {
        if (is_at(i, place) && calls[i].definition == definition_at(place)) calls[i].noted++;
    }
}

void
pw_calls_forget(void)
{
    for (int i = 0; i < MOST; i++) atomic_store(&calls[i].ec, NULL);
}

pw_call_kind
pw_call_kind_at(pw_call_place place)
{
    pw_frame_seen seen = {0};
    pw_call_kind kind = {.self = place.cfp[PW_CFP_SELF]};
    if (place.cfp[PW_CFP_ISEQ] && place.cfp[PW_CFP_PC]) {
        kind.pc = (const VALUE *)place.cfp[PW_CFP_PC];
    }
    else if (pw_walk_look(place.ec, place.cfp, &seen) && seen.frame && !pw_frame_is_iseq(seen.frame)) {
        kind.name = ((const VALUE *)seen.frame)[PW_ME_CALLED_ID];
    }
    return kind;
}

#include "collectors/allocations/places.h"
#include "collectors/allocations/state.h"
#include "output/naming.h"
#include "output/output.h"
#include "session/modules.h"
#include "session/session.h"
#include "vm/vm_compat.h"
#include <stdlib.h>

enum { WALKS = 8, WALK_ROOM = 4096 };

static struct {
    struct { pw_walk walk; uint32_t *nodes; void *memory; } walks[WALKS]; /* by execution context */
    pw_job name_job;
    _Atomic bool asked; /* the job is triggered */
} state;

static void
run_name_job(void *unused)
{
    atomic_store(&state.asked, false);
    if (!pw_alloc.active || !pw_session_generation()) return;
    pw_own_begin();
    pw_sites_name(false);
    pw_own_end();
}

/* Triggers the naming job at once, because a class is kept alive until the class has a name. */
static void
want_names(void)
{
    if (pw_may_trigger() && !atomic_exchange(&state.asked, true)) pw_job_trigger(&state.name_job);
}

/* Called in a hook, which has the GVL. */
void
pw_places_name(void)
{
    pw_naming_trigger_if_wanted();
    if (pw_sites_unnamed()) want_names();
}

static uint32_t
intern_locked(uint32_t parent, const pw_frame_seen *frame)
{
    return pw_intern_node(&pw_out.tables, parent, frame->frame, frame->owner,
                          frame->line > 0 ? (uint32_t)frame->line : 0);
}

uint32_t
pw_place_node(const pw_frame_seen *frame)
{
    pthread_mutex_lock(&pw_current.lock);
    uint32_t node = intern_locked(0, frame);
    pthread_mutex_unlock(&pw_current.lock);
    return node;
}

/* The node of the whole stack. Objects allocated one after another share most of their stacks. So only the frames
 * that differ are looked up. */
uint32_t
pw_place_of_stack(const VALUE *ec)
{
    size_t at = ((VALUE)ec >> 6) % WALKS;
    pw_walk *w = &state.walks[at].walk;
    uint32_t *nodes = state.walks[at].nodes;
    if (!state.walks[at].memory) {
        state.walks[at].memory = calloc(1, pw_walk_bytes(WALK_ROOM) + WALK_ROOM * sizeof(uint32_t));
        if (!state.walks[at].memory) return 0;
        *w = (pw_walk){0};
        pw_walk_place(w, state.walks[at].memory, WALK_ROOM);
        w->every_owner = w->settled = true;
        nodes = state.walks[at].nodes = (uint32_t *)((char *)state.walks[at].memory + pw_walk_bytes(WALK_ROOM));
    }
    uint32_t same = pw_walk_context(w, ec), parent = same ? nodes[same - 1] : 0;
    if (same < w->depth) {
        pthread_mutex_lock(&pw_current.lock);
        if (w->cut && !same) parent = intern_locked(0, &(pw_frame_seen){.frame = PW_FRAME_TRUNCATED});
        for (uint32_t i = same; i < w->depth; i++) {
            if (w->seen[i].frame) parent = intern_locked(parent, &w->seen[i]);
            nodes[i] = parent;
        }
        pthread_mutex_unlock(&pw_current.lock);
    }
    return w->depth ? nodes[w->depth - 1] : 0;
}

/* Finds the innermost frame of Ruby code without knowledge of Ruby's layout. C functions have no line. */
VALUE
pw_place_by_ruby(pw_frame_seen *found)
{
    enum { LOOK = 16 };
    VALUE frames[LOOK];
    int lines[LOOK], n = rb_profile_frames(0, LOOK, frames, lines);
    for (int i = 0; i < n; i++) {
        if (lines[i] <= 0) continue;
        *found = (pw_frame_seen){.frame = frames[i], .line = lines[i]};
        return frames[i] ^ (VALUE)(unsigned)lines[i] << 40;
    }
    *found = (pw_frame_seen){0};
    return 1;
}

pw_site *
pw_place_new_site(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame)
{
    pw_site *site = pw_site_enter(place, klass, type, node, frame);
    pw_places_name();
    return site;
}

void
pw_places_forget_walks(void)
{
    for (int i = 0; i < WALKS; i++) state.walks[i].walk.depth = 0;
}

void pw_places_start(void) { atomic_store(&state.asked, false); }

void
pw_places_free(void)
{
    for (int i = 0; i < WALKS; i++) {
        free(state.walks[i].memory);
        state.walks[i].memory = NULL;
    }
}

void
pw_places_init(void)
{
    if (!pw_job_init(&state.name_job, run_name_job)) {
        rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    }
}

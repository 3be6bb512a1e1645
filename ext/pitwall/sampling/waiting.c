#include "sampling/waiting.h"
#include "sampling/capture.h"
#include "sampling/gc.h"
#include "vm/reader_lock.h"
#include "vm/walk_tests.h"

static struct {
    bool looks; /* stacks may be read from outside */
} state;

void pw_waiting_prepare(void) { state.looks = pw_thread_states() && !pw_outside_refusal(); }
bool pw_waiting_looks(void) { return state.looks; }

/* See pw_look_at_waiting. holds session lock */
static void
look(pw_thread *t, int64_t for_ns)
{
    int64_t now = pw_now_ns();
    if (t->sample.finished || !t->own.stays || atomic_load(&t->own.held) ||
        now - atomic_load(&t->own.suspended_at) < for_ns) {
        return;
    }
    pw_reader_lock();
    uint32_t changes = atomic_load_explicit(&t->own.changes, memory_order_acquire);
    bool ticks = atomic_load(&t->has_timer) || !pw_interrupts(pw_current.ticker);
    bool off_gvl = pw_off_gvl(atomic_load(&t->own.state));
    bool waits = (off_gvl || atomic_load(&t->own.waits)) && ticks && atomic_load(&t->seen.looked_at_change) != changes;
    int64_t cpu = waits ? pw_thread_cpu_now(t) : -1, charged = atomic_load(&t->sample.last_cpu),
                  wall = pw_last_tick(now);
    if (cpu >= 0 && wall > atomic_load(&t->sample.last_wall) && pw_gc_rests()) {
        int64_t ran = atomic_load(&t->own.suspended_at) - atomic_load(&t->sample.last_wall), burnt = cpu - charged,
                      due = burnt < ran ? burnt : ran;
        if (due < 0) due = 0; /* due: CPU time from before the wait, see pw_cpu_to_charge */
        if (pw_capture_outside(t, off_gvl ? PW_BLOCKED : PW_RUNNING, wall, cpu - due > charged ? cpu - due : charged)) {
            pw_count(PW_CAPTURES, 1);
            atomic_store(&t->sample.cpu_due, due);
            atomic_store(&t->seen.looked_at_change, changes);
        }
    }
    pw_reader_unlock();
}

void
pw_look_at_waiting(int64_t for_ns)
{
    for (pw_thread *t = pw_current.threads; t && state.looks; t = t->next) {
        if (t == pw_self()) continue;
        if (pw_off_gvl(atomic_load_explicit(&t->own.state, memory_order_relaxed)) ||
            atomic_load_explicit(&t->own.waits, memory_order_relaxed)) {
            look(t, for_ns);
        }
    }
}

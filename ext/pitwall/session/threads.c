#include "session/threads.h"
#include "session/native_room.h"
#include "vm/reader_lock.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread pw_self_slot pw_tls;
bool pw_gvl_watched, pw_threads_move;

static struct {
    pw_thread *_Atomic slots[PW_SLOTS];
    uint32_t last_slot; /* holds session lock */
} state;

/* One mapping per thread. Pages that its stacks never reach stay untouched and cost nothing. */
enum { ROOM = PW_MAX_DEPTH + 2 };
static const size_t THREAD_BYTES =
    sizeof(pw_thread) + 2 * ROOM * (sizeof(VALUE) + sizeof(int)) + ROOM * sizeof(pw_path_entry) +
    PW_MAX_DEPTH * (sizeof(pw_frame_key) + sizeof(pw_frame_seen)) + 64;

pid_t
pw_gettid(void)
{
#ifdef __linux__
    return (pid_t)syscall(SYS_gettid);
#else
    return getpid();
#endif
}

static pw_thread *
new_thread(VALUE thread, pid_t tid)
{
    uint8_t *at = mmap(NULL, THREAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    pw_thread *t = (pw_thread *)at;
    at += (sizeof(pw_thread) + 15) & ~(size_t)15;
    t->stack.frames = (VALUE *)at, at += ROOM * sizeof(VALUE);
    t->stack.previous_frames = (VALUE *)at, at += ROOM * sizeof(VALUE);
    t->drain.path = (pw_path_entry *)at, at += ROOM * sizeof(pw_path_entry);
    pw_walk_place(&t->stack.walk, at, PW_MAX_DEPTH), at += pw_walk_bytes(PW_MAX_DEPTH);
    t->stack.lines = (int *)at, at += ROOM * sizeof(int);
    t->stack.previous_lines = (int *)at;
    pw_walk_aim(&t->stack.walk, thread);
    t->thread = thread;
    t->carrier.tid = t->carrier.native = tid;
    t->id = pw_current.next_thread_id;
    t->generation = pw_current.generation;
    t->started = pw_now_ns();
    atomic_init(&t->own.state, PW_RUNNING);
    atomic_init(&t->sample.last_wall, t->started);
    t->own.quiet = PW_QUIET_WAITS;
    if (pw_current.native && t->stack.walk.thread) t->native = pw_native_room_new(PW_MAX_DEPTH); /* or NULL */
    int64_t cpu = tid ? pw_clock_ns(pw_cpu_clock_of(tid)) : 0;
    atomic_init(&t->sample.last_cpu, cpu < 0 ? 0 : cpu);
    return t;
}

void
pw_thread_free(pw_thread *t)
{
    if (t->native) pw_native_room_free(t->native);
    munmap(t, THREAD_BYTES);
}

pw_thread *
pw_thread_at(uint32_t slot, uint32_t id)
{
    pw_thread *t = slot < PW_SLOTS ? atomic_load_explicit(&state.slots[slot], memory_order_acquire) : NULL;
    return t && t->id == id && t->generation == pw_session_generation() ? t : NULL;
}

void pw_thread_hide(pw_thread *t) { atomic_store(&state.slots[t->slot], NULL); }
void pw_thread_show(pw_thread *t) { atomic_store(&state.slots[t->slot], t); }

pw_thread *
pw_thread_find(VALUE thread)
{
    for (pw_thread *t = pw_current.threads; t; t = t->next) {
        if (t->thread == thread && !t->sample.finished) return t;
    }
    return NULL;
}

pw_thread *
pw_thread_add(VALUE thread, pid_t tid)
{
    for (uint32_t i = 0; i < PW_SLOTS; i++) {
        uint32_t slot = (state.last_slot + 1 + i) % PW_SLOTS;
        if (atomic_load(&state.slots[slot])) continue;
        pw_thread *t = new_thread(thread, tid);
        if (!t) break;
        pw_current.next_thread_id++;
        state.last_slot = t->slot = slot;
        if (!pw_thread_states()) atomic_store(&t->own.state, PW_UNKNOWN);
        t->drain.row_wall = atomic_load(&t->sample.last_wall) / pw_current.unit_ns;
        t->drain.row_cpu = atomic_load(&t->sample.last_cpu) / pw_current.unit_ns;
        t->next = pw_current.threads;
        pw_current.threads = t;
        atomic_store_explicit(&state.slots[slot], t, memory_order_release);
        return t;
    }
    pw_count(PW_TIMERS_REFUSED, 1);
    return NULL;
}

void
pw_threads_forget(bool frees)
{
    for (uint32_t i = 0; i < PW_SLOTS; i++) {
        if (atomic_load_explicit(&state.slots[i], memory_order_relaxed)) atomic_store(&state.slots[i], NULL);
    }
    for (pw_thread *t = pw_current.threads, *next; t && frees; t = next) {
        next = t->next;
        pw_thread_free(t);
    }
    pw_current.threads = NULL;
}

void
pw_now_running(pw_thread *t)
{
    pw_thread *before = pw_tls.generation == pw_session_generation() ? pw_tls.thread : NULL;
    if (before == t && t) return;
    pw_tls.changing = 1;
    atomic_signal_fence(memory_order_seq_cst);
    pw_tls.thread = NULL;
    if (t) {
        atomic_fetch_add(&t->carrier.entered, 1);
        pw_tls.generation = t->generation;
        pw_tls.slot = t->slot;
        pw_tls.id = t->id;
        atomic_signal_fence(memory_order_seq_cst);
        pw_tls.thread = t;
    }
    atomic_signal_fence(memory_order_seq_cst);
    pw_tls.changing = 0;
    if (before) atomic_fetch_sub(&before->carrier.entered, 1);
}

pw_thread *
pw_self(void)
{
    pw_thread *t = pw_tls.thread;
    return t && pw_tls.generation == pw_session_generation() && pw_thread_at(pw_tls.slot, pw_tls.id) == t ? t : NULL;
}

int64_t
pw_thread_cpu(pw_thread *t)
{
    return t->carrier.cpu_before + pw_own_cpu_ns() - t->carrier.cpu_base;
}

void
pw_thread_leave(pw_thread *t, pid_t tid)
{
    if (!tid) return;
    pw_reader_lock();
    if (atomic_load(&t->carrier.tid) == tid) {
        int64_t cpu = tid == pw_gettid() ? pw_own_cpu_ns() : pw_clock_ns(pw_cpu_clock_of(tid));
        if (cpu > t->carrier.cpu_base) t->carrier.cpu_before += cpu - t->carrier.cpu_base;
        atomic_store(&t->carrier.tid, 0);
        /* Still locked: the next native thread creates a new timer, which thread_left must not stop. */
        pw_current.ticker->thread_left(t);
    }
    pw_reader_unlock();
}

void
pw_thread_arrive(pw_thread *t, pid_t here)
{
    pw_reader_lock();
    t->carrier.cpu_base = pw_own_cpu_ns();
    atomic_store(&t->carrier.tid, here);
    atomic_store(&t->carrier.native, here);
    pw_reader_unlock();
}

int64_t
pw_thread_cpu_now(const pw_thread *t)
{
    if (!t->carrier.tid) return t->carrier.cpu_before;
    int64_t cpu = pw_clock_ns(pw_cpu_clock_of(t->carrier.tid));
    return cpu < 0 ? -1 : t->carrier.cpu_before + cpu - t->carrier.cpu_base;
}

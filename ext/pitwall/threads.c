#include "threads.h"
#include "capture.h"
#include "sampler.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread pw_self_slot pw_tls;

/* One mapping a thread; pages that its stacks never reach stay untouched and cost nothing. */
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

pw_thread *
pw_thread_new(VALUE thread, pid_t tid, uint32_t id, uint32_t generation)
{
    uint8_t *at = mmap(NULL, THREAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    pw_thread *t = (pw_thread *)at;
    at += (sizeof(pw_thread) + 15) & ~(size_t)15;
    t->frames = (VALUE *)at, at += ROOM * sizeof(VALUE);
    t->previous_frames = (VALUE *)at, at += ROOM * sizeof(VALUE);
    t->path = (pw_path_entry *)at, at += ROOM * sizeof(pw_path_entry);
    pw_walk_place(&t->walk, at, PW_MAX_DEPTH), at += pw_walk_bytes(PW_MAX_DEPTH);
    t->lines = (int *)at, at += ROOM * sizeof(int);
    t->previous_lines = (int *)at;
    pw_walk_aim(&t->walk, thread);
    t->thread = thread;
    t->tid = tid;
    t->id = id;
    t->generation = generation;
    t->started = pw_now_ns();
    atomic_init(&t->state, PW_RUNNING);
    atomic_init(&t->last_wall, t->started);
    t->quiet = PW_QUIET_WAITS;
    int64_t cpu = tid ? pw_clock_ns(pw_cpu_clock_of(tid)) : 0;
    atomic_init(&t->last_cpu, cpu < 0 ? 0 : cpu);
    return t;
}

void
pw_thread_free(pw_thread *t)
{
    munmap(t, THREAD_BYTES);
}

pw_thread *
pw_self(void)
{
    pw_thread *t = pw_tls.thread;
    return t && pw_tls.generation == pw_session_generation() ? t : NULL;
}

int64_t
pw_thread_cpu(pw_thread *t)
{
    return t->cpu_carried + pw_own_cpu_ns() - t->cpu_base;
}

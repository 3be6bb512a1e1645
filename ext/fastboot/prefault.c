/*
 * Touches new memory before the program needs the memory. To touch a page is to write to the page. The first write to a
 * page of new memory is a page fault: the kernel finds a free page of RAM, and fills the page with zeros. A new Rails
 * application with 101 gems has 99,000 page faults while it boots, half of them in malloc's memory. A thread that Ruby
 * does not know touches these pages first, on another processor.
 *
 * sbrk(0) is the end of malloc's heap. When a file is loaded and the end has moved up, the main thread allocates a
 * block. The thread touches the pages of the block. When the end moves up again, the main thread allocates the next
 * block, and frees the block before. malloc uses the freed block before malloc moves the end again.
 */
#include "prefault.h"

#ifdef __GLIBC__

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "memory_limits.h"
#include "outside_thread.h"

#define MIB ((size_t)1 << 20)
#define LEAST_GROWTH (8 * MIB) /* If the heap grows by less, no block is allocated. */
#define PARTS 16               /* The size of a block is the heap's growth divided by this. */
#define MOST (3 * MIB)         /* the largest block. At the end of a Rails boot malloc takes blocks of 2 to 4 MiB from
                                  its heap anyway. */
#define NEAR (1024 * MIB)      /* The start of the heap is nearer than this to its end. Mappings are further away. */
#define IDLE_S 1               /* If no block was requested for so long, the thread ends. */
#define OVER_S 5               /* If no file was loaded for so long, the boot is over. */

static struct {
    int is_noted;     /* Is `grown` still updated? */
    int is_on;        /* Are blocks still allocated? */
    pthread_t main;
    char *begin;      /* sbrk(0) when Native.prefault was called */
    char *end;        /* sbrk(0) after the last decision about a block */
    time_t last_file; /* when the last file was loaded, in seconds of CLOCK_MONOTONIC */
    size_t expected;  /* growth of the heap in the last boot, in bytes; 0: unknown */
    size_t most;      /* growth of the heap, in bytes, beyond which no block is allocated */
    size_t allocated; /* bytes of all blocks so far */
    size_t grown;     /* growth of the heap when the last file was loaded, in bytes, without the held block */
} heap;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t request; /* signalled when there is a block to touch */

/* Read and written by the main thread and by the thread that touches. Both hold `lock`. */
static struct {
    char *block; /* allocated, and not yet freed */
    size_t size;
    int is_touched;
    int has_thread;
    size_t touched; /* bytes of all blocks that the thread has touched */
} held;

/* holds lock */
static void
free_held(void)
{
    free(held.block);
    held.block = NULL;
}

static time_t
now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ---- The thread. For a thread that calls malloc or free, malloc reserves 64 MiB of addresses. So this thread calls
 * neither. ---- */

static void
touch(volatile char *block, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t offset = 0; offset < size; offset += page) block[offset] = 0;
}

/* Gives the pages of the block back to the kernel. The block stays allocated. */
static void
give_back(char *block, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)block + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)block + size) / page * page;
    if (end > first) madvise((void *)first, end - first, MADV_DONTNEED);
}

/* Waits for a block that is not touched yet. Returns 0 if there was no such block for IDLE_S. holds lock */
static int
await_block(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_S;
    while (!held.block || held.is_touched) {
        if (pthread_cond_timedwait(&request, &lock, &until) == ETIMEDOUT) return held.block && !held.is_touched;
    }
    return 1;
}

static void *
touch_blocks(void *unused)
{
    pthread_mutex_lock(&lock);
    while (await_block()) {
        char *block = held.block;
        size_t size = held.size;
        pthread_mutex_unlock(&lock);
        touch(block, size);
        pthread_mutex_lock(&lock);
        held.is_touched = 1;
        held.touched += size;
    }
    if (held.block) give_back(held.block, held.size);
    held.has_thread = 0;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- The main thread ---- */

/* How many processors this thread may use. 2 if the system does not say how many. */
static int
processors(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 2;
}

static int
is_in_heap(const char *block, size_t size)
{
    uintptr_t first = (uintptr_t)block;
    return first + NEAR > (uintptr_t)heap.begin && first + size <= (uintptr_t)sbrk(0);
}

/* A block of malloc's heap, or NULL. */
static char *
allocate(size_t size)
{
    for (int try = 0; try < 2; try++) {
        char *block = malloc(size);
        if (!block || is_in_heap(block, size)) return block;
        /* malloc made a mapping for this block, because the block is larger than a threshold. Freeing the block makes
         * glibc's malloc raise the threshold, so the second try is in the heap. The second try fails with another
         * malloc, or if the environment has set one of glibc's thresholds. */
        free(block);
    }
    return NULL;
}

static size_t
growth(void)
{
    char *end = sbrk(0);
    return end > heap.begin ? (size_t)(end - heap.begin) : 0;
}

/* The size of the next block, in bytes. 0: no block is needed now. */
static size_t
next_size(size_t grown)
{
    size_t known = heap.expected ? heap.expected : grown;
    size_t size = known / PARTS < MOST ? known / PARTS : MOST;
    if (known < LEAST_GROWTH) return 0;
    if (heap.expected && (grown + size > heap.expected || heap.allocated + size > heap.expected)) return 0;
    return size;
}

/* Allocates the next block, and asks the thread to touch the block. Returns 0 if either fails. holds lock */
static int
hold(size_t size)
{
    held.size = size;
    held.is_touched = 0;
    held.block = allocate(size);
    if (held.block && !held.has_thread) held.has_thread = processors() > 1 && fb_start_thread(touch_blocks);
    if (!held.block || !held.has_thread) {
        free_held();
        return 0;
    }
    heap.allocated += size;
    pthread_cond_signal(&request);
    return 1;
}

/* holds lock */
static void
hold_next(size_t grown)
{
    size_t size = next_size(grown);
    if (size == 0) return;
    heap.is_on = grown + size <= heap.most && !fb_has_memory_limit() && hold(size);
}

/* holds lock */
static void
note_growth(void)
{
    size_t grown = growth(), unused = held.block ? held.size : 0;
    heap.grown = grown > unused ? grown - unused : 0;
}

void
fb_prefault_loads(void)
{
    /* Other threads allocate from other arenas of malloc. */
    if (!heap.is_noted || !pthread_equal(pthread_self(), heap.main)) return;
    time_t now = now_s();
    if (now - heap.last_file > OVER_S) {
        heap.is_noted = 0;
        return;
    }
    heap.last_file = now;
    if ((char *)sbrk(0) <= heap.end) return;

    pthread_mutex_lock(&lock);
    if (!held.block || held.is_touched) {
        char *before = held.block;
        held.block = NULL;
        if (heap.is_on) hold_next(growth());
        free(before);
        heap.end = sbrk(0);
    }
    note_growth();
    pthread_mutex_unlock(&lock);
}

static void
before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void
after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child has no such thread. */
static void
after_fork_in_child(void)
{
    heap.is_on = 0;
    held.has_thread = 0;
    free_held();
    pthread_mutex_unlock(&lock);
}

/* ---- For Ruby ---- */

/* prefault(MiB that malloc's heap grew in the last boot, or 0) -> nil, or why it does not begin. Called once, in the
 * main thread. */
static VALUE
native_prefault(VALUE self, VALUE expected)
{
    heap.expected = NUM2UINT(expected) * MIB;
    heap.begin = heap.end = sbrk(0);
    heap.main = pthread_self();
    heap.most = fb_most_memory();
    heap.last_file = now_s();
    if (processors() < 2) return rb_str_new_cstr("there is one processor");
    if (fb_has_memory_limit()) return rb_str_new_cstr("memory is limited (ulimit)");

    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int failure = pthread_cond_init(&request, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!failure) failure = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    if (failure) return rb_str_new_cstr(strerror(failure));
    heap.is_noted = heap.is_on = 1;
    return Qnil;
}

/* prefaults -> [MiB that the thread has touched, MiB that malloc's heap had grown when the last file was loaded]. The
 * growth is nil if prefault has not begun. */
static VALUE
native_prefaults(VALUE self)
{
    pthread_mutex_lock(&lock);
    size_t touched = held.touched;
    pthread_mutex_unlock(&lock);
    VALUE grown = heap.is_noted || heap.grown > 0 ? ULL2NUM(heap.grown / MIB) : Qnil;
    return rb_ary_new_from_args(2, ULL2NUM(touched / MIB), grown);
}

void
fb_define_prefault(VALUE native)
{
    rb_define_singleton_method(native, "prefault", native_prefault, 1);
    rb_define_singleton_method(native, "prefaults", native_prefaults, 0);
}

#else

void
fb_prefault_loads(void)
{
}

void
fb_define_prefault(VALUE native)
{
}

#endif

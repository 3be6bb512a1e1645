/* Memory that is refused when a test says so. For programs linked with --wrap of malloc, calloc, realloc and free
 * (the line `wraps:` of a test file). Counts what is still held, so that a test sees leaks without LeakSanitizer. */
#ifndef PITWALL_FAILING_MEMORY_H
#define PITWALL_FAILING_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static _Atomic long memory_held;         /* pieces of memory given out and not freed */
static _Atomic long memory_asked;        /* requests since memory_fails was called */
static _Atomic long memory_refused;      /* requests refused since then */
static long memory_fails_from, memory_fails_to;

/* Refuses the requests number `from` to `to`, counted from 1, e.g. (3, 3): the third alone. (0, 0): none. */
static void
memory_fails(long from, long to)
{
    memory_fails_from = from;
    memory_fails_to = to;
    memory_asked = memory_refused = 0;
}

static bool
memory_is_refused(void)
{
    long number = ++memory_asked;
    bool refused = memory_fails_from && number >= memory_fails_from && number <= memory_fails_to;
    memory_refused += refused;
    return refused;
}

static void *
memory_counted(void *memory)
{
    if (memory) memory_held++;
    return memory;
}

void *__wrap_malloc(size_t size) { return memory_is_refused() ? NULL : memory_counted(__real_malloc(size)); }

void *
__wrap_calloc(size_t n, size_t size)
{
    return memory_is_refused() ? NULL : memory_counted(__real_calloc(n, size));
}

void *
__wrap_realloc(void *memory, size_t size)
{
    if (memory_is_refused()) return NULL;
    return memory ? __real_realloc(memory, size) : memory_counted(__real_realloc(NULL, size));
}

void
__wrap_free(void *memory)
{
    if (memory) memory_held--;
    __real_free(memory);
}

#endif

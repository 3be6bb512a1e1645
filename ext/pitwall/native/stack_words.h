/* Reads words of a stack. A stack pointer may be anything: the program may have switched stacks, or spoilt them. So a
 * page is read only after the kernel has said that it can be read. Each unwinding asks anew, because stacks of fibers
 * come and go. For the stack that the native thread was made with, one question is enough for the lowest page so far: its
 * pages stay for as long as the thread is there, from the stack pointer up to its end. */
#ifndef PITWALL_STACK_WORDS_H
#define PITWALL_STACK_WORDS_H

#include "native/stack_bounds.h"
#include "tools/readable.h"

typedef struct {
    uintptr_t from, size; /* this range can be read, from ... from + size - 1 */
    uintptr_t page;       /* size of a page, in bytes */
} pw_stack_words;

/* async-signal-safe */
static __attribute__((noinline, unused)) bool
pw_words_ask(pw_stack_words *w, uintptr_t address)
{
    if (address & 7) return false;
    uintptr_t page = address & -w->page;
    bool own = address >= pw_own_stack.from && address < pw_own_stack.to;
    bool seen = own && pw_own_stack.seen && page >= pw_own_stack.seen;
    if (!seen && !pw_readable(page)) return false;
    if (own) {
        if (!seen) pw_own_stack.seen = page;
        w->from = pw_own_stack.seen;
        w->size = pw_own_stack.to - w->from;
    }
    else if (page == w->from + w->size) w->size += w->page;
    else if (page + w->page == w->from) {
        w->from = page;
        w->size += w->page;
    }
    else {
        w->from = page;
        w->size = w->page;
    }
    return true;
}

/* False: there is no memory at the address, or it is no address of a word. AddressSanitizer forbids to read what lies
 * between variables. async-signal-safe */
__attribute__((no_sanitize("address"))) static inline bool
pw_word(pw_stack_words *w, uintptr_t address, uintptr_t *word)
{
    if ((address & 7) || address - w->from >= w->size) {
        if (!pw_words_ask(w, address)) return false;
    }
    *word = *(const volatile uintptr_t *)address;
    return true;
}

#endif

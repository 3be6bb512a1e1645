#include "tools/wipe_stack.h"
#include <stdint.h>
#include <string.h>

enum { WORDS = 512 }; /* more words than the frames from here to Ruby's marking occupy */

__attribute__((noinline)) void
pw_wipe_stack(void)
{
    uintptr_t words[WORDS];
    memset(words, 0, sizeof words);
    __asm__ volatile("" : : "r"(words) : "memory"); /* otherwise the compiler removes the memset */
}

/* Tells whether something has happened several times in a row. Tickers use it to see that they hold the program up. */
#ifndef PITWALL_IN_A_ROW_H
#define PITWALL_IN_A_ROW_H

#include <stdbool.h>
#include <stdint.h>

/* Did it happen now, and the last three times before? `count` begins with 0. One time alone may be chance: the core
 * was taken away, or a long collection ran. async-signal-safe */
static inline bool
pw_in_a_row(uint8_t *count, bool happened)
{
    enum { TIMES = 4 };
    if (!happened) *count = 0;
    else if (*count < TIMES) ++*count;
    return *count == TIMES;
}

#endif

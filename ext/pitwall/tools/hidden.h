/* Hot data that several files share: declared hidden, the compiler addresses it directly instead of by way of a
 * table. */
#ifndef PITWALL_HIDDEN_H
#define PITWALL_HIDDEN_H

#define PW_HIDDEN __attribute__((visibility("hidden")))

#endif

/* Marks hot data that several files share. The compiler addresses hidden data directly, instead of through a table
 * of addresses. */
#ifndef PITWALL_HIDDEN_H
#define PITWALL_HIDDEN_H

#define PW_HIDDEN __attribute__((visibility("hidden")))

#endif

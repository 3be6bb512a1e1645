/* Modules and classes on which the program defined methods. When the recording ends, Pitwall::Collect::Definitions
 * measures what a definition on each of them costs (CHDF of doc/record-format.md). It does so only if the setting asks
 * for it. */
#ifndef PITWALL_DEFINITIONS_H
#define PITWALL_DEFINITIONS_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* May raise. needs GVL */
void pw_definitions_start(bool wanted);
/* A method was defined on the module. needs GVL */
void pw_definition_noted(VALUE module);
/* Measures. The collector notes no change any more. needs GVL */
void pw_definitions_measure(void);
void pw_definitions_write(void);
void pw_definitions_forget(bool frees);

#endif

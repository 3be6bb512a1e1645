/* Who keeps objects alive: a shortest path of references from a root to each of some chosen objects.
 *
 * At the recording's end, on request, with the GVL and no other Ractor; nothing is followed any more then. The
 * search itself makes no Ruby object and calls no method: it asks Ruby, as ObjectSpace.reachable_objects_from does,
 * what each object refers to, breadth first. Only the objects of the paths found are named, by Ruby code of
 * Pitwall's (lib/pitwall/collect/holders.rb). */
#ifndef PITWALL_HOLDERS_H
#define PITWALL_HOLDERS_H

#include <ruby/ruby.h>
#include <stdbool.h>

enum { PW_HELD_OF_SITE = 3, PW_HELD = 60 };

void pw_holders_start(bool wanted);
bool pw_holders_wanted(void);
void pw_holders_choose(uint32_t site); /* objects of this site are to be explained */
/* An object of a site that lives at the end: some of the chosen sites' are kept in mind. */
void pw_holders_see(uint32_t site, VALUE object);
void pw_holders_find(void);  /* runs Ruby; takes the session's lock. needs GVL */
void pw_holders_write(void); /* HOLD, once. holds session lock */
void pw_holders_forget(bool frees);

#endif

/* Finds holders of objects: a shortest path of references from a root to each of some chosen objects.
 *
 * The search runs at the recording's end, on request, with the GVL and no other Ractor. Objects are not followed any
 * more by then. The search is breadth first and reads references as ObjectSpace.reachable_objects_from does. It
 * creates no Ruby object and calls no method. Afterwards lib/pitwall/collect/holders.rb names the objects on the
 * paths, and no others. */
#ifndef PITWALL_HOLDERS_H
#define PITWALL_HOLDERS_H

#include <ruby/ruby.h>
#include <stdbool.h>

enum { PW_HELD_OF_SITE = 3, PW_HELD = 60 };

void pw_holders_start(bool wanted);
bool pw_holders_wanted(void);
void pw_holders_choose(uint32_t site); /* find holders for objects of this site */
/* An object of `site` lives at the end. Keeps up to PW_HELD_OF_SITE objects of a chosen site. */
void pw_holders_see(uint32_t site, VALUE object);
void pw_holders_find(void);  /* runs Ruby; takes the session lock. needs GVL */
void pw_holders_write(void); /* writes the HOLD chunk, once. holds session lock */
void pw_holders_forget(bool frees);

#endif

/* The place of an allocation: the innermost line of Ruby code, or the whole stack. Also names sites. */
#ifndef PITWALL_PLACES_H
#define PITWALL_PLACES_H

#include "collectors/allocations/sites.h"
#include "vm/stack_walk.h"

/* The stack node of a place, or of the whole stack of an execution context. Both take the session lock. */
uint32_t pw_place_node(const pw_frame_seen *frame);
uint32_t pw_place_of_stack(const VALUE *ec);
/* Finds the innermost place through Ruby's API, for a Ruby whose layout is unknown. Stores its frame in `found`. */
VALUE pw_place_by_ruby(pw_frame_seen *found);
/* Adds a site, and notes that the site needs a name. */
pw_site *pw_place_new_site(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame);
/* Call in a hook: triggers the naming job if a site has no name. needs GVL */
void pw_places_name(void);

/* Clears the cached walk, because frames may have been freed since. The next walk reads all frames. */
void pw_places_forget_walks(void);
void pw_places_start(void);
void pw_places_free(void);
void pw_places_init(void);

#endif

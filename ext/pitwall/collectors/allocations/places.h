/* Where an object is allocated: the innermost line of Ruby code, or the whole stack; and names for the sites. */
#ifndef PITWALL_PLACES_H
#define PITWALL_PLACES_H

#include "collectors/allocations/sites.h"
#include "vm/stack_walk.h"

/* The node of a place, or of the whole stack of an execution context. Both take the session's lock. */
uint32_t pw_place_node(const pw_frame_seen *frame);
uint32_t pw_place_of_stack(const VALUE *ec);
/* The innermost place without knowing the layout, and the frame found there. */
VALUE pw_place_by_ruby(pw_frame_seen *found);
/* Enters a site, whose name is wanted soon. */
pw_site *pw_place_new_site(VALUE place, VALUE klass, uint8_t type, uint32_t node, VALUE frame);
/* In a hook: asks for a job that names sites, where some have no name. needs GVL */
void pw_places_name(void);

/* Frames may have been freed since the last walk: the next walk looks at all. */
void pw_places_forget_walks(void);
void pw_places_start(void);
void pw_places_free(void);
void pw_places_init(void);

#endif

/* The name and the place of a frame. All functions need the GVL. */
#ifndef PITWALL_FRAME_NAMES_H
#define PITWALL_FRAME_NAMES_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    VALUE frame, owner;  /* in; out: 0 for none */
    uint8_t kind;        /* out: PW_KIND_... */
    uint32_t first_line;
    VALUE name, path;    /* Strings */
    bool ownerless;      /* out: a method's code, but no sample has shown the method */
} pw_frame_description;

/* Fills a pw_frame_description. The argument is the description's address, as rb_protect needs. Returns nil. */
VALUE pw_frame_describe(VALUE description);
/* The name of a frame, as in the recording; nil: none. */
VALUE pw_frame_name(VALUE frame, VALUE owner);

/* Frame numbers from PW_FRAME_CALLED on are C functions. `called` finds the class and the name of such a function. */
void pw_frame_names_of_calls(bool (*called)(VALUE frame, VALUE *klass, ID *name));

const char *pw_last_path_part(const char *path);

void pw_frame_names_init(void);

#endif

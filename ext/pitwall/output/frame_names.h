/* What a frame is called, and where it stands. All functions need the GVL. */
#ifndef PITWALL_FRAME_NAMES_H
#define PITWALL_FRAME_NAMES_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    VALUE frame, owner;  /* in; out: 0 where there is none */
    uint8_t kind;        /* out: PW_KIND_... */
    uint32_t first_line;
    VALUE name, path;    /* Strings */
    bool ownerless;      /* a method's code, and no look has shown whose it is */
} pw_frame_description;

/* Describes a frame: the argument is a pw_frame_description's address, for rb_protect. Returns nil. */
VALUE pw_frame_describe(VALUE description);
/* A frame's name as the recording will have it; nil where there is none. */
VALUE pw_frame_name(VALUE frame, VALUE owner);

/* From PW_FRAME_CALLED on, a frame's number stands for a C function that was called: `called` finds its class and
 * name. */
void pw_frame_names_of_calls(bool (*called)(VALUE frame, VALUE *klass, ID *name));

const char *pw_last_path_part(const char *path);

void pw_frame_names_init(void);

#endif

#include "output/native_names.h"
#include "native/objects.h"
#include "native/symbols.h"
#include "output/naming.h"
#include "output/output.h"
#include "session/session.h"
#include <string.h>

enum { BATCH = 64 };

static bool
has_symbol(VALUE frame)
{
    return frame != PW_FRAME_COMPILED && frame != PW_FRAME_WITHOUT_GVL && frame != PW_FRAME_UNKNOWN;
}

/* Adds a row. holds session lock */
static void
name(uint32_t id, VALUE frame, const pw_symbol *symbol)
{
    pw_intern *t = &pw_out.tables;
    pw_symbol s = *symbol;
    if (frame == PW_FRAME_COMPILED) s = (pw_symbol){"(compiled code)", 15, ""};
    else if (frame == PW_FRAME_WITHOUT_GVL) s = (pw_symbol){"(without the GVL)", 17, ""};
    else if (frame == PW_FRAME_UNKNOWN) s = (pw_symbol){"(unknown code)", 14, ""};
    uint32_t name = pw_intern_string(t, s.name, s.name_length), path = pw_intern_string(t, s.object, strlen(s.object));
    pw_naming_add(id, PW_KIND_NATIVE, name, path, 0);
}

void
pw_name_native_frames(void)
{
    pw_intern *t = &pw_out.tables;
    while (t->nameless_native < t->frame_count) {
        VALUE frames[BATCH];
        uint32_t ids[BATCH], n = 0, i = t->nameless_native;
        for (; i < t->frame_count && n < BATCH; i++) {
            if (!pw_frame_is_native(t->frames[i].frame)) continue;
            frames[n] = t->frames[i].frame;
            ids[n++] = t->frames[i].id;
        }
        t->nameless_native = i;
        for (uint32_t at = 0; at < n; at++) {
            pw_symbol symbol = {"", 0, ""};
            /* The first function of an object costs the reading of the object's symbols. Garbage collection needs the
             * lock meanwhile. */
            pthread_mutex_unlock(&pw_current.lock);
            if (has_symbol(frames[at])) {
                uint16_t object = pw_object_of_frame(frames[at]);
                pw_symbol_of(object ? pw_object_numbered(object - 1u) : NULL, pw_function_of_frame(frames[at]), &symbol);
            }
            pthread_mutex_lock(&pw_current.lock);
            name(ids[at], frames[at], &symbol);
        }
    }
}

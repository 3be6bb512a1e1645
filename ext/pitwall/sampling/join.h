/* Joins a thread's control frames and its native frames into one stack.
 *
 * Next to the root both stacks seldom change between two samples. So each run of Ruby code that begins is noted as a
 * checkpoint. The next stack is joined from the last checkpoint on before which nothing has changed. */
#ifndef PITWALL_JOIN_H
#define PITWALL_JOIN_H

#include "session/native_room.h"

/* Makes room->stack of the control frames of the walk (room->roles) and the native frames (room->frames). The `kept`
 * native frames and walk->kept control frames nearest to the root are as in the last join.
 *
 * The `inner` native frames at the leaf stand below the frame `leaf`, or below all control frames if `leaf` is 0. Then
 * walk->kept is the depth of the walk. async-signal-safe */
void pw_join(pw_native_room *room, pw_walk *walk, uint32_t kept, VALUE leaf, uint32_t inner);

#endif

#ifndef FASTBOOT_ZONE_DATA_H
#define FASTBOOT_ZONE_DATA_H

#include <ruby.h>

/* Defines Native.zone_bytes(transitions, class) and Native.zone_transitions(bytes, offsets, class), for
 * Pitwall::Fastboot::ZoneData. */
void fb_define_zone_data(VALUE native);

#endif

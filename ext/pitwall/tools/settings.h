/* A collector's settings: a Hash whose keys and values are Strings. All functions need the GVL. */
#ifndef PITWALL_SETTINGS_H
#define PITWALL_SETTINGS_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

VALUE pw_setting(VALUE settings, const char *name); /* or nil */
bool pw_setting_is_on(VALUE settings, const char *name, bool otherwise); /* on: "1" */
uint64_t pw_setting_number(VALUE settings, const char *name, uint64_t otherwise);

#endif

# frozen_string_literal: true

require "mkmf"

$CFLAGS += " -D_GNU_SOURCE"
append_cflags(%w[-std=gnu11 -Wall -Wno-unused-parameter -fvisibility=hidden])
# In no public header. Without it, fastboot.rb asks the module Coverage.
have_func("rb_get_coverages", [])

create_makefile("pitwall/fastboot_pack")

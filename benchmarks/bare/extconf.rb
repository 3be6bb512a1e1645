# frozen_string_literal: true

require "mkmf"

append_cflags(%w[-std=gnu11 -Wall -Wextra -Wno-unused-parameter])
have_library("rt", "timer_create")
create_makefile("bare")

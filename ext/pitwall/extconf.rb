# frozen_string_literal: true

require "mkmf"

if RUBY_ENGINE != "ruby" || (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 1]).negative?
  abort "pitwall-core needs CRuby 3.1 or newer; this is #{RUBY_ENGINE} #{RUBY_VERSION}"
end

$CFLAGS += " -D_GNU_SOURCE"
append_cflags(%w[-std=gnu11 -Wall -Wno-unused-parameter -fvisibility=hidden])
$CFLAGS += " -DPITWALL_ASAN=1 -fsanitize=address -fno-omit-frame-pointer" if ENV["PITWALL_ASAN"]
$LDFLAGS += " -fsanitize=address" if ENV["PITWALL_ASAN"]
# Signal handlers call functions that must have been looked up before.
append_ldflags("-Wl,-z,now")

have_header("linux/perf_event.h")
have_func("pthread_getcpuclockid", "pthread.h")
have_library("rt", "timer_create")
# Ruby 3.2 brought thread events, 3.3 the thread in their data and preregistered postponed jobs.
have_func("rb_internal_thread_add_event_hook", "ruby/thread.h")
have_func("rb_internal_thread_specific_get", "ruby/thread.h")
have_func("rb_postponed_job_preregister", "ruby/debug.h")
have_func("rb_profile_thread_frames", "ruby/debug.h")
# Since 3.2, when objects began to have slots of several sizes; in no header.
have_func("rb_gc_obj_slot_size", [])
have_func("rb_class_attached_object", "ruby.h")

# Only of 3.1 is it known what this points to.
if RUBY_VERSION.start_with?("3.1.") && try_link("extern __thread void *ruby_current_ec;\nint main(void) { return ruby_current_ec != 0; }")
  $defs << "-DHAVE_RUBY_CURRENT_EC"
end

create_makefile("pitwall/pitwall")

# The program that starts whole commands for `pitwall bench` stands beside the extension. Without it the extension is whole.
File.open("Makefile", "a") do |makefile|
  makefile.puts(<<~RULES)

    all: pitwall-launch
    pitwall-launch: $(srcdir)/launcher/pitwall-launch.c
    \t$(CC) -std=gnu11 -O2 -Wall -Wno-unknown-warning-option -o $@ $<
    install-so: install-launch
    install-launch: pitwall-launch
    \t$(MAKEDIRS) $(RUBYARCHDIR)
    \t$(INSTALL_PROG) pitwall-launch $(RUBYARCHDIR)
    .PHONY: install-launch
  RULES
end

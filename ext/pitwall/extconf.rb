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
have_func("rb_class_attached_object", "ruby.h")
have_func("rb_set_new", "ruby.h")
# In no header, or no promise of one: vm_compat.h says what stands in for each that is gone.
%w[rb_gc_obj_slot_size rb_obj_memsize_of rb_objspace_each_objects
   rb_objspace_reachable_objects_from].each { |name| have_func(name, []) }
%w[ROBJECT_EMBED ROBJECT_HEAP RSTRING_NOEMBED RARRAY_EMBED_FLAG RUBY_ELTS_SHARED
   RUBY_FL_SINGLETON RUBY_T_NODE RUBY_T_MOVED RUBY_T_ZOMBIE].each { |name| have_const(name, "ruby.h") }
# For tests of what is left on a Ruby whose layouts nobody knows.
$defs << "-DPITWALL_UNKNOWN_LAYOUT" if ENV["PITWALL_UNKNOWN_LAYOUT"]

# Only of these is it known what this points to (test/native/layout_check.c: PW_EC_STACK).
current_ec = "extern __thread void *ruby_current_ec;\nint main(void) { return ruby_current_ec != 0; }"
if RUBY_VERSION.start_with?("3.1.", "3.2.") && try_link(current_ec)
  $defs << "-DHAVE_RUBY_CURRENT_EC"
end

# The sources lie in folders, one for each layer (pitwall.c names them). mkmf by itself looks at this folder only.
sources = Dir.chdir(__dir__) { Dir["**/*.c"] }.reject { |file| file.start_with?("launcher/") }.sort
$srcs = sources.map { |file| File.join(__dir__, file) }
folders = sources.map { |file| File.dirname(file) }.uniq - ["."]
$VPATH.concat(folders.map { |folder| "$(srcdir)/#{folder}" })

# For tests of failing calls: test/faults/faults.c stands between the extension and the C library.
if ENV["PITWALL_FAULTS"]
  faults = File.expand_path("../../test/faults", __dir__)
  $VPATH << faults
  $srcs << File.join(faults, "faults.c")
  source = File.read(File.join(faults, "faults.c"))
  forms = [/^WRAP\([^,]+, (\w+),/, /^WRAP_RETURNING\((\w+),/, /^__wrap_(\w+)\(/]
  wrapped = forms.flat_map { |form| source.scan(form).flatten }.uniq
  $LDFLAGS += wrapped.map { |name| " -Wl,--wrap=#{name}" }.join
end

create_makefile("pitwall/pitwall")

# The program that starts whole commands for `pitwall bench` is beside the extension. The extension works without it.
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

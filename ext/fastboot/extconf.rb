# frozen_string_literal: true

require "mkmf"

$CFLAGS += " -D_GNU_SOURCE"
append_cflags(%w[-std=gnu11 -Wall -Wno-unused-parameter -fvisibility=hidden])
# In no public header. Without it, fastboot.rb asks the module Coverage.
have_func("rb_get_coverages", [])
# Without it, garbage collection does not rest (gc_rest.c).
have_func("rb_postponed_job_preregister", "ruby/debug.h")
# In no public header. Without it, Ruby looks for real paths itself (real_paths.c).
have_func("rb_objspace_reachable_objects_from_root", [])
have_library("pthread")
# Without them, a rest may end while a C extension has disabled collections (extension_frames.c).
have_func("backtrace", "execinfo.h")
have_library("dl", "dladdr")
have_func("dladdr", "dlfcn.h")
have_func("getauxval", "sys/auxv.h")
have_func("rb_hash_new_capa")
# Set is one of the core classes.
have_func("rb_set_foreach")

create_makefile("pitwall/fastboot_pack")

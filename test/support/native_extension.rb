# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "../../script/checkout"

# A C extension for tests of native frames, built for the running Ruby. Its functions burn CPU time and call each other
# and Ruby in known ways, so that the stack below each of them is known.
#
#   Known.outer { … }    c_outer → c_inner → rb_yield → the block
#   Known.leaf           c_leaf → burn_in_leaf
#   Known.before         c_before → burn_in_before, then the block, then burn_in_after
#   Known.call(object)   c_call → rb_funcall → object.called
#   Known.call_c         c_call_c → rb_funcall → Known.leaf, without Ruby code between
#   Known.jump           c_jump, which ends in a jump to burn_in_jump and so is not on the stack
module NativeExtension
  SOURCE = <<~C
    #include <ruby.h>
    #include <time.h>

    #define FUNCTION __attribute__((noinline, noclone, visibility("default")))
    volatile long known_sink;

    static inline __attribute__((always_inline)) void
    burn(double seconds)
    {
        struct timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        double until = now.tv_sec + now.tv_nsec / 1e9 + seconds;
        do {
            for (int i = 0; i < 20000; i++) known_sink += i;
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        } while (now.tv_sec + now.tv_nsec / 1e9 < until);
    }

    FUNCTION void burn_in_leaf(void) { burn(0.01); known_sink++; }
    FUNCTION void burn_in_before(void) { burn(0.005); known_sink++; }
    FUNCTION void burn_in_after(void) { burn(0.005); known_sink++; }
    FUNCTION VALUE burn_in_jump(VALUE self) { burn(0.01); known_sink++; return self; }

    FUNCTION VALUE c_leaf(VALUE self) { burn_in_leaf(); known_sink++; return self; }
    FUNCTION VALUE c_inner(VALUE value) { VALUE given = rb_yield(value); known_sink++; return given; }
    FUNCTION VALUE c_outer(VALUE self) { VALUE given = c_inner(self); known_sink++; return given; }

    FUNCTION VALUE
    c_before(VALUE self)
    {
        burn_in_before();
        VALUE given = c_inner(self);
        burn_in_after();
        known_sink++;
        return given;
    }

    FUNCTION VALUE
    c_call(VALUE self, VALUE object)
    {
        VALUE given = rb_funcall(object, rb_intern("called"), 0);
        known_sink++;
        return given;
    }

    FUNCTION VALUE c_call_c(VALUE self) { VALUE given = rb_funcall(self, rb_intern("leaf"), 0); known_sink++; return given; }
    FUNCTION VALUE c_jump(VALUE self) { __attribute__((musttail)) return burn_in_jump(self); }

    void
    Init_known(void)
    {
        VALUE known = rb_define_module("Known");
        rb_define_singleton_method(known, "leaf", c_leaf, 0);
        rb_define_singleton_method(known, "outer", c_outer, 0);
        rb_define_singleton_method(known, "before", c_before, 0);
        rb_define_singleton_method(known, "call", c_call, 1);
        rb_define_singleton_method(known, "call_c", c_call_c, 0);
        rb_define_singleton_method(known, "jump", c_jump, 0);
    }
  C
  CC = ENV.fetch("CC", "cc")
  FOLDER = File.join(Checkout::ROOT, "tmp/units", Checkout::TAG)

  module_function

  # Whether there is a C compiler here.
  #: () -> bool
  def compiler? = system(CC, "--version", out: File::NULL, err: File::NULL) || false

  # @return [String] the path of known.so
  #: () -> String
  def build
    FileUtils.mkdir_p(FOLDER)
    library, source = File.join(FOLDER, "known.so"), File.join(FOLDER, "known.c")
    text = SOURCE.sub("__attribute__((musttail)) ", "") # -O2 makes it a jump
    return library if File.file?(library) && File.file?(source) && File.read(source) == text

    includes = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |folder| "-I#{folder}" }
    Dir.mktmpdir("known", FOLDER) do |dir|
      File.write("#{dir}/known.c", text)
      output, status = Open3.capture2e(CC, "-shared", "-fPIC", "-O2", "-g0", *includes, "#{dir}/known.c", "-o", "#{dir}/known.so")
      raise output unless status.success?

      File.rename("#{dir}/known.so", library)
      File.rename("#{dir}/known.c", source)
    end
    library
  end
end

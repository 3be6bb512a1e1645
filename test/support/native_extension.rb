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
#   Known.sort           c_sort → qsort of libc → c_compare → rb_yield → the block
#   Known.protect        c_protect → rb_protect → c_protected → rb_yield → the block; exceptions end there
#   Known.ensure         c_ensure → rb_ensure → c_protected → rb_yield → the block, then c_ensured → burn_in_after
#   Known.swap           c_swap → swapcontext to a stack of its own: c_swapped → burn_in_leaf
#   Known.alternate      c_alternate → SIGUSR1 on an alternate stack: c_handler → burn_in_handler
#   Known.threads(n)     n native threads that Ruby does not know, each in burn_in_leaf
#   Known.load(path, n)  n times dlopen, its function burn_in_loaded, dlclose; without the GVL
module NativeExtension
  SOURCE = <<~C
    #include <ruby.h>
    #include <ruby/thread.h>
    #include <dlfcn.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <time.h>
    #include <ucontext.h>

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

    FUNCTION int c_compare(const void *a, const void *b) { rb_yield(Qnil); known_sink++; return *(int *)a - *(int *)b; }
    FUNCTION VALUE c_sort(VALUE self) { int two[2] = {2, 1}; qsort(two, 2, sizeof two[0], c_compare); known_sink++; return self; }

    FUNCTION VALUE c_protected(VALUE value) { VALUE given = rb_yield(value); known_sink++; return given; }
    FUNCTION VALUE c_ensured(VALUE value) { burn_in_after(); known_sink++; return value; }

    FUNCTION VALUE
    c_protect(VALUE self)
    {
        int state = 0;
        rb_protect(c_protected, Qnil, &state);
        if (state) rb_set_errinfo(Qnil);
        known_sink++;
        return INT2FIX(state);
    }

    FUNCTION VALUE
    c_ensure(VALUE self)
    {
        VALUE given = rb_ensure(c_protected, Qnil, c_ensured, Qnil);
        known_sink++;
        return given;
    }

    static ucontext_t known_back, known_there;
    FUNCTION void c_swapped(void) { burn_in_leaf(); known_sink++; }

    FUNCTION VALUE
    c_swap(VALUE self)
    {
        size_t size = 1 << 18;
        char *stack = malloc(size);
        getcontext(&known_there);
        known_there.uc_stack.ss_sp = stack;
        known_there.uc_stack.ss_size = size;
        known_there.uc_link = &known_back;
        makecontext(&known_there, c_swapped, 0);
        swapcontext(&known_back, &known_there);
        free(stack);
        return self;
    }

    FUNCTION void burn_in_handler(void) { burn(0.02); known_sink++; }
    FUNCTION void c_handler(int signo) { burn_in_handler(); known_sink++; }

    FUNCTION VALUE
    c_alternate(VALUE self)
    {
        stack_t before, own = {.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};
        struct sigaction action = {.sa_handler = c_handler, .sa_flags = SA_ONSTACK | SA_RESTART}, was;
        sigaltstack(&own, &before);
        sigaction(SIGUSR1, &action, &was);
        pthread_kill(pthread_self(), SIGUSR1);
        sigaction(SIGUSR1, &was, NULL);
        sigaltstack(&before, NULL);
        free(own.ss_sp);
        return self;
    }

    static void *known_thread(void *unused) { burn_in_leaf(); return unused; }

    static void *
    known_threads(void *count)
    {
        pthread_t threads[64];
        long n = (long)count;
        for (long i = 0; i < n; i++) pthread_create(&threads[i], NULL, known_thread, NULL);
        for (long i = 0; i < n; i++) pthread_join(threads[i], NULL);
        return NULL;
    }

    FUNCTION VALUE
    c_threads(VALUE self, VALUE count)
    {
        rb_thread_call_without_gvl(known_threads, (void *)(NUM2LONG(count) & 63), NULL, NULL);
        return self;
    }

    typedef struct { const char *path; long times, called; } known_loads;

    FUNCTION void *
    c_loading(void *given)
    {
        known_loads *loads = given;
        for (long i = 0; i < loads->times; i++) {
            void *library = dlopen(loads->path, RTLD_NOW | RTLD_LOCAL);
            void (*function)(void) = library ? (void (*)(void))dlsym(library, "burn_in_loaded") : NULL;
            if (function) function(), loads->called++;
            if (library) dlclose(library);
        }
        known_sink++;
        return NULL;
    }

    FUNCTION VALUE
    c_load(VALUE self, VALUE path, VALUE times)
    {
        known_loads loads = {StringValueCStr(path), NUM2LONG(times), 0};
        rb_thread_call_without_gvl(c_loading, &loads, NULL, NULL);
        return LONG2NUM(loads.called);
    }

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
        rb_define_singleton_method(known, "sort", c_sort, 0);
        rb_define_singleton_method(known, "protect", c_protect, 0);
        rb_define_singleton_method(known, "ensure", c_ensure, 0);
        rb_define_singleton_method(known, "swap", c_swap, 0);
        rb_define_singleton_method(known, "alternate", c_alternate, 0);
        rb_define_singleton_method(known, "threads", c_threads, 1);
        rb_define_singleton_method(known, "load", c_load, 2);
    }
  C
  CC = ENV.fetch("CC", "cc")
  FOLDER = File.join(Checkout::ROOT, "tmp/units", Checkout::TAG)

  module_function

  # Whether there is a C compiler here.
  #: () -> bool
  def compiler? = system(CC, "--version", out: File::NULL, err: File::NULL) || false

  # Compiles a C extension from one file.
  # @raise [RuntimeError] the compiler failed; the message is the compiler's output
  #: (String, String, *String) -> void
  def compile(source, library, *options)
    includes = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |folder| "-I#{folder}" }
    output, status = Open3.capture2e(CC, "-shared", "-fPIC", *options, *includes, source, "-o", library)
    raise output unless status.success?
  end

  # @return [String] the path of known.so
  #: () -> String
  def build
    FileUtils.mkdir_p(FOLDER)
    library, source = File.join(FOLDER, "known.so"), File.join(FOLDER, "known.c")
    text = SOURCE.sub("__attribute__((musttail)) ", "") # -O2 makes it a jump
    return library if File.file?(library) && File.file?(source) && File.read(source) == text

    Dir.mktmpdir("known", FOLDER) do |dir|
      File.write("#{dir}/known.c", text)
      compile("#{dir}/known.c", "#{dir}/known.so", "-O2", "-g0")
      File.rename("#{dir}/known.so", library)
      File.rename("#{dir}/known.c", source)
    end
    library
  end

  # Builds a library with the function burn_in_loaded, which burns `ms`. `more`: further C code.
  #: (String, ?ms: Integer, ?more: String) -> String  the path
  def library(path, ms: 2, more: "")
    burning = SOURCE[/^static inline.*?^}$/m]
    File.write("#{path}.c", <<~C)
      #include <time.h>
      static volatile long known_sink;
      #{more}
      #{burning}
      __attribute__((noinline)) void burn_in_loaded(void) { burn(#{ms / 1000.0}); known_sink++; }
    C
    output, status = Open3.capture2e(CC, "-shared", "-fPIC", "-O2", "-Wl,--build-id=sha1", "#{path}.c", "-o", path)
    raise output unless status.success?

    path
  end
end

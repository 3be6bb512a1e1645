# frozen_string_literal: true

module Pitwall
  # What differs between Ruby versions on the Ruby side, and nothing else (the C side has vm_compat.h).
  # @api private
  module Compat
    module_function

    # Which just-in-time compiler runs, "none" if none.
    #: () -> String
    def jit
      jits.key("on") || "none"
    end

    # The JIT compilers that this Ruby knows, each "on" or "off": {"yjit" => "off", "zjit" => "on"}.
    #: () -> Hash[String, String]
    def jits
      known = %i[YJIT ZJIT RJIT MJIT].select { |name| defined?(RubyVM) && RubyVM.const_defined?(name) && RubyVM.const_get(name).respond_to?(:enabled?) }
      known.to_h { |name| [name.to_s.downcase, RubyVM.const_get(name).enabled? ? "on" : "off"] }
    end

    # What this Ruby cannot tell a sampler, in words for the report.
    #: (thread_states: bool, mode: String, walk: String) -> Array[String]
    def limits(thread_states:, mode:, walk:)
      notes = []
      unless thread_states || mode == "none"
        notes << "Ruby #{RUBY_VERSION} gives no thread events (3.2 and newer do): waiting for the GVL, sleeping and running are not told apart"
      end
      if mode == "safepoint"
        notes << "safepoint mode: stacks are taken at Ruby's safepoints, so lines and leaf methods are biased towards them"
        notes << "safepoint mode without thread events: waiting of threads in the background is shown as one place" if !thread_states && Native.outside_refusal
      end
      notes << "garbage collector #{Native.other_gc}: it does not tell when it runs, so its time is the program's own here" if Native.other_gc
      notes << "M:N threads (RUBY_MN_THREADS): blocks of threads that changed native threads go by the name of their method" if many_to_few? && walk == "own" && mode != "none"
      notes << "Ruby #{RUBY_VERSION}: blocks go by the name of the method they are written in" if walk != "own"
      notes << "with #{jit.upcase}, a line is the one Ruby last saved, or the method's first, and C functions that were inlined have no frame" if jit != "none"
      notes
    end

    # Do the main Ractor's threads share native threads?
    #: () -> bool
    def many_to_few? = RUBY_VERSION >= "3.3" && ENV["RUBY_MN_THREADS"] == "1"

    # Where every other living thread runs.
    #: () -> Array[[Thread, Integer?]]
    def other_threads
      (Thread.list - [Thread.current]).map { |thread| [thread, native_id(thread)] }
    end

    # In a forked child Ruby 3.1 has the main thread's of the parent.
    #: (Thread) -> Integer?
    def native_id(thread)
      id = thread.native_thread_id
      thread == Thread.main && id && !File.exist?("/proc/self/task/#{id}") ? Process.pid : id
    end

    # Ruby 3.1 dies when it reports a collection in the thread of a Ractor that is just starting. Before the first Ractor there
    # the recording gives up its GC frames.
    #: () -> void
    def guard_ractors
      return if @guarded || !defined?(Ractor) || RUBY_VERSION >= "3.2"

      @guarded = true
      Ractor.singleton_class.prepend(Module.new do
        def new(...)
          Native.stop_gc_frames
          super
        end
      end)
    end

    # Does Ruby tell who waits? Where not (3.1), a tick's signal wakes threads that wait for the GVL, which then take turns at each tick.
    #: () -> bool
    def thread_events? = RUBY_VERSION >= "3.2"

    # Does every allocation take Ruby's long way while somebody wants to be told of collections (3.1: 15 ns more for a String)?
    #: () -> bool
    def gc_events_slow_allocation? = RUBY_VERSION < "3.3"

    # Fibers created from here on find the value under the name in their storage; before Ruby 3.2 they have none.
    #: (Symbol, untyped) -> void
    def leave_to_fibers(name, value)
      Fiber[name] = value if STORAGE
    end
    STORAGE = Fiber.respond_to?(:[]=)
    private_constant :STORAGE

    # A constant that is there by now, as (:Minitest, :Test); nil where it isn't. An autoload is left alone.
    #: (*Symbol) -> untyped
    def constant(*names)
      names.inject(Object) do |scope, name|
        return nil unless scope.is_a?(Module) && scope.const_defined?(name, false) && !scope.autoload?(name, false)

        scope.const_get(name, false)
      end
    end

    #: () -> bool
    def main_ractor?
      !defined?(Ractor) || !Ractor.respond_to?(:main) || Ractor.current == Ractor.main
    end
  end
  private_constant :Compat
end

# frozen_string_literal: true

module Pitwall
  # All differences between Ruby versions on the Ruby side. (Those of the C side are in vm/vm_compat.h.)
  # @api private
  module Compat
    module_function

    # The just-in-time compiler that runs: "yjit"; "none" if none does.
    #: () -> String
    def jit
      jits.key("on") || "none"
    end

    # The JIT compilers that this Ruby knows, each "on" or "off": {"yjit" => "off", "zjit" => "on"}.
    #: () -> Hash[String, String]
    def jits
      known = %i[YJIT ZJIT RJIT MJIT].select do |name|
        defined?(RubyVM) && RubyVM.const_defined?(name) && RubyVM.const_get(name).respond_to?(:enabled?)
      end
      known.to_h { |name| [name.to_s.downcase, RubyVM.const_get(name).enabled? ? "on" : "off"] }
    end

    # Notes for the report on what a sampler cannot find out in this Ruby.
    #: (thread_states: bool, mode: String, walk: String) -> Array[String]
    def limits(thread_states:, mode:, walk:)
      notes = []
      unless thread_states || mode == "none"
        notes << "Ruby #{RUBY_VERSION} gives no thread events (3.2 and newer do): " \
                 "waiting for the GVL, sleeping and running are not told apart"
      end
      if mode == "safepoint"
        notes << "safepoint mode: stacks are taken at Ruby's safepoints, " \
                 "so lines and leaf methods are biased towards them"
        if !thread_states && Native.outside_refusal
          notes << "safepoint mode without thread events: waiting of threads in the background is shown as one place"
        end
      end
      if Native.other_gc
        notes << "garbage collector #{Native.other_gc}: it does not tell when it runs, " \
                 "so its time is the program's own here"
      end
      if many_to_few? && walk == "own" && mode != "none"
        notes << "M:N threads (RUBY_MN_THREADS): blocks of threads that changed native threads " \
                 "go by the name of their method"
      end
      notes << "Ruby #{RUBY_VERSION}: blocks go by the name of the method they are written in" if walk != "own"
      if jit != "none"
        notes << "with #{jit.upcase}, a line is the one Ruby last saved, or the method's first, " \
                 "and C functions that were inlined have no frame"
      end
      notes
    end

    # Whether the main Ractor's threads share native threads.
    #: () -> bool
    def many_to_few? = RUBY_VERSION >= "3.3" && ENV["RUBY_MN_THREADS"] == "1"

    # All other living threads with the ids of their native threads.
    #: () -> Array[[Thread, Integer?]]
    def other_threads
      (Thread.list - [Thread.current]).map { |thread| [thread, native_id(thread)] }
    end

    # The id of a thread's native thread. In a forked child, Ruby 3.1 gives the id of the parent's main thread.
    #: (Thread) -> Integer?
    def native_id(thread)
      id = thread.native_thread_id
      thread == Thread.main && id && !File.exist?("/proc/self/task/#{id}") ? Process.pid : id
    end

    # Ruby 3.1 crashes when it reports a collection in the thread of a Ractor that is just starting. There the recording
    # stops its GC frames before the first Ractor starts.
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

    # Whether Ruby reports which threads wait. Without such events (3.1), the signal of a tick wakes threads that wait
    # for the GVL, and they take turns at each tick.
    #: () -> bool
    def thread_events? = RUBY_VERSION >= "3.2"

    # Whether a hook for collections makes Ruby allocate by its slow path. On 3.1 that costs 15 ns more for a String.
    #: () -> bool
    def gc_events_slow_allocation? = RUBY_VERSION < "3.3"

    # Puts a value into fiber storage, which fibers that are created later inherit. Ruby 3.1 has no fiber storage.
    #: (Symbol, untyped) -> void
    def inherit_in_fibers(name, value)
      Fiber[name] = value if STORAGE
    end
    STORAGE = Fiber.respond_to?(:[]=)
    private_constant :STORAGE

    # The value of a constant that is already defined, such as (:Minitest, :Test); otherwise nil.
    # It triggers no autoload.
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

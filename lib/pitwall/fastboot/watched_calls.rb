# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Notes calls of methods, for Effects: those whose effect shows neither in objects nor in ProcessState. `begin`
    # replaces these methods in the whole process.
    # @api private
    module WatchedCalls
      CHILDREN = %i[system spawn ` exec].freeze
      HANDLERS = %i[at_exit trap set_trace_func].freeze
      # `fork` calls Process._fork.
      ALWAYS = { Kernel => HANDLERS + CHILDREN, Kernel.singleton_class => HANDLERS + CHILDREN,
                 Process.singleton_class => %i[_fork spawn exec daemon setproctitle setrlimit setpriority setsid],
                 IO.singleton_class => %i[popen write binwrite copy_stream],
                 IO => %i[write syswrite write_nonblock pwrite],
                 Signal.singleton_class => %i[trap], Thread.singleton_class => %i[new start fork],
                 Ractor.singleton_class => %i[new], TracePoint => %i[enable], TracePoint.singleton_class => %i[trace],
                 ObjectSpace.singleton_class => %i[define_finalizer], Warning => %i[warn] }.freeze
      # A call of these counts only if the receiver is older than the gem.
      OF_RECEIVERS = { Hash => %i[default= default_proc= compare_by_identity replace],
                       Module => %i[private_constant deprecate_constant],
                       IO => %i[sync= reopen set_encoding binmode close close_read close_write close_on_exec=
                                autoclose=] }.freeze
      OWN_FOLDER = "#{__dir__}/".freeze
      private_constant :CHILDREN, :HANDLERS, :ALWAYS, :OF_RECEIVERS, :OWN_FOLDER

      @main = Ractor.current
      @seen = [] # pairs: a method's name, such as "IO#write"; its receiver, or nil

      module_function

      # From here on calls are noted.
      #: () -> void
      def begin
        ALWAYS.each { |mod, names| names.each { |name| replace(mod, name, "nil") } }
        OF_RECEIVERS.each { |mod, names| names.each { |name| replace(mod, name, "self") } }
      end

      #: () -> void
      def clear = @seen.clear

      # Names of the methods that were called.
      # @yieldparam receiver the call's receiver
      # @yieldreturn whether the receiver is older than the gem
      #: () { (untyped) -> bool } -> Array[String]
      def names = @seen.filter_map { |name, receiver| name if receiver.nil? || yield(receiver) }.uniq

      # Objects of this library that change when a method is called.
      #: () -> Array[untyped]
      def own_objects = [self, @seen]

      # The methods that replace the program's call this. A Ractor other than the main one may not read `@seen`.
      # @param receiver nil: the call always counts
      #: (String, untyped) -> void
      def note(name, receiver)
        return unless Ractor.current.equal?(@main)

        path = caller_locations(2, 1)&.first&.path # of the code that called the replaced method
        @seen << [name, receiver] unless path.to_s.start_with?(OWN_FOLDER)
      end

      # Written with `def`: a method made of a block can't be called in another Ractor.
      def replace(mod, name, receiver)
        is_private = mod.private_method_defined?(name)
        return unless is_private || mod.method_defined?(name) # not on this system

        kept = "pitwall_watched_#{name.name.unpack1("H*")}"
        mod.class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
          alias_method :#{kept}, #{name.inspect}
          def #{name}(...)
            ::Pitwall::Fastboot::WatchedCalls.note(#{full_name(mod, name).inspect}, #{receiver})
            #{kept}(...)
          end
          #{is_private ? "private" : "public"} #{name.inspect}
        RUBY
      end

      # "IO#write", "Thread.new", "at_exit"
      def full_name(mod, name)
        text = mod.inspect.sub(/\A#<Class:(.+)>\z/, "\\1.")
        text.start_with?("Kernel") ? name.name : "#{text}#{"#" unless text.end_with?(".")}#{name}"
      end
    end
  end
end

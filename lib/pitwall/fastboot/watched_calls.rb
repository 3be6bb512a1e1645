# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Calls of methods whose effect no object and no setting shows. From `new` on, the methods of the program are
    # replaced. For Effects.
    # @api private
    class WatchedCalls
      CHILDREN = %i[system spawn ` fork exec].freeze
      HANDLERS = %i[at_exit trap set_trace_func].freeze
      ALWAYS = { Kernel => HANDLERS + CHILDREN, Kernel.singleton_class => HANDLERS + CHILDREN,
                 Process.singleton_class => %i[spawn fork exec daemon setproctitle setrlimit setpriority setsid],
                 Signal.singleton_class => %i[trap], Thread.singleton_class => %i[new start fork],
                 TracePoint => %i[enable], IO => %i[write syswrite], Warning => %i[warn] }.freeze
      # These count if the receiver was there before.
      OF_RECEIVERS = { Hash => %i[default= default_proc= compare_by_identity],
                       Module => %i[private_constant deprecate_constant],
                       IO => %i[sync= reopen set_encoding binmode] }.freeze
      OWN_FOLDER = "#{__dir__}/".freeze
      private_constant :CHILDREN, :HANDLERS, :ALWAYS, :OF_RECEIVERS, :OWN_FOLDER

      def initialize
        @seen = [] # pairs: a method's name; its receiver, or nil
        ALWAYS.each { |mod, names| names.each { |name| replace(mod, name, false) } }
        OF_RECEIVERS.each { |mod, names| names.each { |name| replace(mod, name, true) } }
      end

      #: () -> void
      def clear = @seen.clear

      # Names of the methods that were called.
      # @yieldparam receiver of a call that counts only if the receiver was there before
      # @yieldreturn whether it was
      #: () { (untyped) -> bool } -> Array[Symbol]
      def names
        @seen.filter_map { |name, receiver| name if receiver.nil? || yield(receiver) }.uniq
      end

      # Objects of this library that change when a method is called.
      #: () -> Array[untyped]
      def own_objects = [self, @seen]

      private

      def replace(mod, name, of_receiver)
        seen = @seen
        plain = mod.instance_method(name)
        is_private = mod.private_method_defined?(name)
        mod.define_method(name) do |*arguments, **options, &block|
          caller_path = caller_locations(1, 1)&.first&.path.to_s
          seen << [name, (self if of_receiver)] unless caller_path.start_with?(OWN_FOLDER)
          plain.bind_call(self, *arguments, **options, &block)
        end
        mod.send(:private, name) if is_private
      end
    end
    private_constant :WatchedCalls
  end
end

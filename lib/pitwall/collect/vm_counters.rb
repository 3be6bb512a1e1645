# frozen_string_literal: true

module Pitwall
  module Collect
    # Makes the VM's counters of its caches grow, so that the extension finds where in memory they are.
    # @api private
    module VMCounters
      # Keys of a JIT compiler's counters: invalidations, and with --yjit-stats or --zjit-stats exits.
      OF_JIT = /\Ainvalidat|\A(?:side|total)_exit_count\z/.freeze
      JITS = { "yjit" => %i[YJIT runtime_stats], "zjit" => %i[ZJIT stats] }.freeze
      private_constant :OF_JIT, :JITS

      # The constant that `bump` sets and reads.
      module Lesson
        def self.read = Turn
      end
      private_constant :Lesson

      @turn = 0

      class << self
        # Counters of RubyVM.stat and of the JIT compiler that is enabled, with their values.
        # @return [Array] names and values in turns
        #: () -> Array[String | Integer]
        def all
          jit = JITS.flat_map { |prefix, (name, reader)| of_jit(prefix, name, reader) }
          RubyVM.stat.flat_map { |name, value| [name.to_s, value] } + jit
        end

        # Increases each counter that the extension looks for in memory.
        #: () -> void
        def bump
          @turn += 1
          Lesson.const_set(:Turn, @turn)
          Lesson.read
          Lesson.__send__(:remove_const, :Turn)
          base = Class.new
          Class.new(base).class_variable_set(:@@pitwall, 1)
          base.class_variable_set(:@@pitwall, 1)
          Object.new.instance_variable_set(:"@pitwall_#{@turn}", 1)
        end

        private

        def of_jit(prefix, name, reader)
          jit = RubyVM.const_get(name) if RubyVM.const_defined?(name)
          return [] unless jit.respond_to?(reader) && jit.respond_to?(:enabled?) && jit.enabled?

          jit.public_send(reader).to_h.flat_map do |key, value|
            OF_JIT.match?(key) && value.is_a?(Integer) ? ["#{prefix}_#{key}", value] : []
          end
        end
      end
    end
  end
end

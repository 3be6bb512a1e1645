# frozen_string_literal: true

module Pitwall
  module Collect
    # The VM's counters of its caches, and the JIT compilers' counters of invalidated code and exits.
    # @api private
    module VMCounters
      # The constant that `bump` sets and reads.
      module Lesson
        def self.read = Turn
      end
      private_constant :Lesson

      @turn = 0

      class << self
        # {"class_serial" => 782, …}. The names are those of RubyVM.stat.
        #: () -> Hash[String, Integer]
        def read
          return {} unless defined?(::RubyVM) && ::RubyVM.respond_to?(:stat)

          ::RubyVM.stat.transform_keys(&:to_s).merge(jit)
        end

        # {"yjit_invalidation_count" => 3, …}; empty where no JIT is on.
        #: () -> Hash[String, Integer]
        def jit
          compilers = { "yjit" => [:YJIT, :runtime_stats], "zjit" => [:ZJIT, :stats] }
          compilers.each_with_object({}) do |(name, (jit, stats)), found|
            next unless ::RubyVM.const_defined?(jit) && ::RubyVM.const_get(jit).enabled?

            figures = ::RubyVM.const_get(jit).public_send(stats)
            figures&.each do |key, value|
              found["#{name}_#{key}"] = value if value.is_a?(Integer) && key.to_s.match?(/invalidat|exit/)
            end
          end
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
      end
    end
  end
end

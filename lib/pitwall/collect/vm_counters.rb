# frozen_string_literal: true

module Pitwall
  module Collect
    # Makes the VM's counters of its caches grow, so that the extension finds where in memory they are.
    # @api private
    module VMCounters
      # The constant that `bump` sets and reads.
      module Lesson
        def self.read = Turn
      end
      private_constant :Lesson

      @turn = 0

      class << self
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

# frozen_string_literal: true

# A loop of pure CPU work under a deep stack: 150–200 frames, of which the last twelve come and go.
# What it asks of a profiler: how much a sample costs when there is a lot of stack to read and nothing else happens.
#
#   ruby benchmarks/programs/deep.rb [AMOUNT]     # AMOUNT: turns of the loop (default 100000)
module Programs
  class Deep
    # With blocks and `each` counted, the loop runs about 165 frames deep and its leaf about 177.
    LEVELS = 48

    #: (Integer) -> Integer
    def run(amount) = descend(LEVELS, amount)

    private

    # Three shapes of call in turn, as real stacks are not one method repeated.
    def descend(level, amount)
      return grind(amount) if level.zero?

      case level % 3
      when 0 then through_method(level, amount)
      when 1 then through_block(level, amount)
      else through_c_function(level, amount)
      end
    end

    def through_method(level, amount) = descend(level - 1, amount)
    def through_block(level, amount) = hand_over(level) { |n| descend(n, amount) }
    def through_c_function(level, amount) = [level].each { |n| return descend(n - 1, amount) }
    def hand_over(level) = yield(level - 1)

    def grind(amount)
      sum = 0
      i = 0
      while i < amount
        sum = (sum + climb(i, i & 7)) & 0xffff_ffff
        i += 1
      end
      sum
    end

    def climb(value, steps) = steps.zero? ? mix(value) : climb(value + 1, steps - 1) ^ steps

    def mix(value)
      j = 0
      while j < 10
        value = (value * 31 + j) & 0xffff
        j += 1
      end
      value
    end
  end
end

puts Programs::Deep.new.run(Integer(ARGV.fetch(0, "100000"))) if $PROGRAM_NAME == __FILE__

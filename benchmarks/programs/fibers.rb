# frozen_string_literal: true

# Fibers inside fibers, enumerators that run as fibers, and fibers that come and go. Each has a native stack of its own.
#
#   ruby benchmarks/programs/fibers.rb [AMOUNT]     # AMOUNT: turns (default 100)
module Programs
  class Fibers
    # Returns a sum, the same for the same amount.
    #: (Integer) -> Integer
    def run(amount)
      sum = 0
      amount.times { |i| sum += nested(8, i) + many(i) + enumerators + raised }
      sum
    end

    private

    def nested(depth, value)
      depth.zero? ? work(value) : Fiber.new { nested(depth - 1, value) + Fiber.yield(1).to_i }.resume
    end

    def many(value)
      fibers = Array.new(20) { |i| Fiber.new { 5.times { |n| Fiber.yield(work(value + n + i)) } && 0 } }
      fibers.sum { |fiber| Array.new(6) { fiber.resume }.sum }
    end

    def enumerators
      numbers = Enumerator.new { |y| 50.times { |i| y << work(i) } }
      Array.new(20) { numbers.next }.sum + numbers.lazy.map { |n| n * 3 }.select(&:even?).first(5).sum
    end

    def raised
      Fiber.new { [1, 2].each { |n| raise ArgumentError, "number #{n}" if n == 1 } }.resume
    rescue ArgumentError => e
      e.message.size
    end

    def work(value) = Array.new(20) { |i| (value * i).to_s }.sort_by { |text| text.reverse }.sum(&:size)
  end
end

puts Programs::Fibers.new.run(Integer(ARGV.fetch(0, "100"))) if $PROGRAM_NAME == __FILE__

# frozen_string_literal: true

# Calls and little else: recursion, blocks, small methods, operators; what a tracer costs most.
#
#   ruby benchmarks/programs/call_heavy.rb [AMOUNT]     # AMOUNT: rounds (default 20)
module Programs
  class CallHeavy
    Item = Struct.new(:price, :count)

    def initialize
      @items = Array.new(50) { |i| Item.new(i * 7 % 31, 1 + (i % 3)) }
    end

    # Returns a sum, the same for the same amount.
    #: (Integer) -> Integer
    def run(amount)
      sum = 0
      amount.times { |i| sum += fib(16) + total(i) + walk(i) }
      sum
    end

    private

    def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)

    def total(round)
      sum = 0
      20.times { @items.each { |item| sum += cost(item, round) } }
      sum
    end

    def cost(item, round) = discount(item.price * item.count, round)
    def discount(value, round) = round.even? ? value : value - 1

    def walk(round)
      count = 0
      each_pair(40) { |a, b| count += 1 if smaller?(a, b, round) }
      count
    end

    def each_pair(n)
      n.times { |a| n.times { |b| yield a, b } }
    end

    def smaller?(a, b, round) = a + round < b
  end
end

puts Programs::CallHeavy.new.run(Integer(ARGV.fetch(0, "20"))) if $PROGRAM_NAME == __FILE__

# frozen_string_literal: true

# Small objects and little else, so it shows what a counter of objects costs an object. Each turn makes eight (a point,
# an array, strings, a hash, a float beside integers). A thousandth of them stay a while.
#
#   ruby benchmarks/programs/objects.rb [AMOUNT]     # AMOUNT: turns (default 250000: 2 million objects)
module Programs
  class Objects
    Point = Struct.new(:x, :y)

    #: (Integer) -> Integer
    def run(amount)
      kept = Array.new(500)
      i = 0
      while i < amount
        made = turn(i)
        kept[i / 1000 % 500] = made if (i % 1000).zero?
        i += 1
      end
      kept.compact.size
    end

    private

    def turn(number)
      point = Point.new(number, number + 1)
      name = "point #{number & 1023}"
      list = [point, name, { number: number }]
      list.push(name.upcase, Object.new, [number, name])
    end
  end
end

puts Programs::Objects.new.run(Integer(ARGV.fetch(0, "250000"))) if $PROGRAM_NAME == __FILE__

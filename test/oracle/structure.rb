# frozen_string_literal: true

# Call paths of two sides, the slow and obvious way: a hash of whole paths for each side.
module Oracle
  module Structure
    PERIOD = 6

    module_function

    # [stack of names, weight, calls] of each row → path → [weight, calls] of the path alone
    def alone(rows)
      rows.each_with_object(Hash.new { |sums, path| sums[path] = [0, 0] }) do |(stack, weight, calls), sums|
        path = short(stack)
        sums[path][0] += weight
        sums[path][1] += calls
      end
    end

    # path → weight of the path with all that begin with it
    def total(alone, path) = alone.sum { |other, (weight, _)| other[0, path.size] == path ? weight : 0 }

    # All paths that begin one of the rows' paths.
    def paths(*sides) = sides.flat_map { |side| side.keys.flat_map { |path| (1..path.size).map { |n| path[0, n] } } }.uniq

    # Frame by frame: where the end repeats itself, the repetition is left out.
    def short(stack)
      stack.each_with_object([]) do |name, path|
        path << name
        length = (1..PERIOD).find { |size| path.size >= 2 * size && path.last(size) == path.last(2 * size).first(size) }
        path.pop(length) if length
      end
    end
  end
end

# frozen_string_literal: true

# What a call graph has, by writing out each stack: slow and obvious. A sample is [stack, weight]; a stack is a list of
# [method, line running] from the root to the leaf.
module GraphOracle
  Sums = Struct.new(:own, :total, :callers, :callees)

  module_function

  # {method => Sums}; callers and callees: {[neighbour, line of the call] => weight}
  def sums(samples)
    samples.each_with_object({}) do |(stack, weight), all|
      next if weight.zero?

      names = stack.map(&:first)
      names.uniq.each do |name|
        sums = (all[name] ||= Sums.new(0, 0, Hash.new(0), Hash.new(0)))
        first, last = names.index(name), names.rindex(name)
        sums.total += weight
        sums.callers[first.zero? ? [nil, 0] : stack[first - 1]] += weight
        last == names.size - 1 ? sums.own += weight : sums.callees[[names[last + 1], stack[last][1]]] += weight
      end
    end
  end

  # {[symbol, its caller, …] => weight}: chains from the outermost call of any of the names up to the root
  def chains(samples, names)
    samples.each_with_object(Hash.new(0)) do |(stack, weight), all|
      at = stack.index { |name,| names.include?(name) } or next
      chain = stack[0..at].map(&:first).reverse
      (1..chain.size).each { |size| all[chain.first(size)] += weight }
    end
  end
end

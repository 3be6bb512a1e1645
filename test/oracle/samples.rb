# frozen_string_literal: true

# Slow, obvious answers to what Analyse works out with arrays and passes. A sample is [stack, weight]; a stack is a list of
# [name, path, first line, line, kind] from the root to the leaf.
module Oracle
  module_function

  # [name, path, first line, kind]
  def method(frame) = [frame[0], frame[1] || "", frame[2] || 0, frame[4] || 0]

  def total(samples) = samples.sum(&:last)

  # {method => weight of samples that end in it}
  def self_by_method(samples)
    sums = Hash.new(0)
    samples.each { |stack, weight| sums[method(stack.last)] += weight }
    sums
  end

  # {method => weight of samples in which it occurs}
  def total_by_method(samples)
    sums = Hash.new(0)
    samples.each { |stack, weight| stack.map { |frame| method(frame) }.uniq.each { |method| sums[method] += weight } }
    sums
  end

  # {caller of the first occurrence => weight}; nil at the root
  def callers(samples, name)
    sums = Hash.new(0)
    samples.each do |stack, weight|
      at = stack.index { |frame| frame[0] == name } or next
      sums[at.zero? ? nil : method(stack[at - 1])] += weight
    end
    sums
  end

  # {called by the last occurrence => weight}
  def callees(samples, name)
    sums = Hash.new(0)
    samples.each do |stack, weight|
      at = stack.rindex { |frame| frame[0] == name } or next
      sums[method(stack[at + 1])] += weight if at + 1 < stack.size
    end
    sums
  end

  # {path of methods from the root => weight that passes there}
  def top_down(samples) = prefixes(samples.map { |stack, weight| [stack.map { |frame| method(frame) }, weight] })

  # {path of methods from the leaf => weight that came this way}
  def bottom_up(samples) = prefixes(samples.map { |stack, weight| [stack.map { |frame| method(frame) }.reverse, weight] })

  def prefixes(paths)
    sums = Hash.new(0)
    paths.each { |path, weight| (1..path.size).each { |size| sums[path.first(size)] += weight } }
    sums
  end

  # Cuts each stack below the first of the methods named.
  def blackbox(samples, names)
    samples.map do |stack, weight|
      at = stack.index { |frame| names.include?(frame[0]) }
      [at ? stack[0..at] : stack, weight]
    end
  end

  # {[path, line] => weight}: innermost line of Ruby, and any.
  def lines(samples)
    own = Hash.new(0)
    all = Hash.new(0)
    samples.each do |stack, weight|
      places = stack.select { |frame| (frame[4] || 0).zero? && !frame[1].to_s.empty? && frame[3].to_i.positive? }.map { |frame| [frame[1], frame[3]] }
      own[places.last || ["", 0]] += weight
      places.uniq.each { |place| all[place] += weight }
    end
    [own, all]
  end
end

# frozen_string_literal: true

module Benchmarks
  # The weight of all samples in which a method occurs, by the method's own name. Each profiler writes class and block
  # in its own way, and the truth programs' method names are unique.
  module MethodTotals
    ALL = "(all)"

    module_function

    # stacks: [[labels, weight], …], labels in any order.
    #: (Enumerable[[Array[String], Numeric]]) -> Hash[String, Numeric]
    def of(stacks)
      bare = Hash.new { |names, label| names[label] = label[/[A-Za-z_]\w*[?!=]?\z/] || label }
      stacks.each_with_object(Hash.new(0)) do |(labels, weight), totals|
        totals[ALL] += weight
        labels.map { |label| bare[label] }.uniq.each { |name| totals[name] += weight }
      end
    end
  end
end

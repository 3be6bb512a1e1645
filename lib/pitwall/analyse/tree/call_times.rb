# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Time and calls of each method. total = own + wait + child; recursion counts once in total.
    module CallTimes
      # own: in the method itself; wait: in it, while another thread or fiber ran (wall time only); child: in what it called.
      Row = Struct.new(:method, :total, :own, :wait, :child, :calls)

      # Methods that were called or took any time, largest own time first.
      # @param weight [Symbol] :wall or :cpu; the tree has :calls and :wait as well
      #: (CallTree, Symbol) -> Array[Row]
      def self.rows(tree, weight)
        totals = tree.total_by_method(weight)
        owns = tree.self_by_method(weight)
        calls = tree.self_by_method(:calls)
        waits = Array.new(tree.methods.size, 0)
        if weight == :wall
          waits = tree.self_by_method(:wait)
          totals = totals.zip(tree.total_by_method(:wait)).map(&:sum)
        end
        rows = tree.methods.each_with_index.map do |method, at|
          Row.new(method, totals[at], owns[at], waits[at], totals[at] - owns[at] - waits[at], calls[at])
        end
        rows.reject! { |row| row.method.equal?(tree.methods[0]) || (row.total.zero? && row.calls.zero?) }
        rows.sort_by { |row| [-row.own, -row.total, row.method.name, row.method.path] }
      end
    end
  end
end

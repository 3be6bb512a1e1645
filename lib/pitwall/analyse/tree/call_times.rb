# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Time and number of calls of each method. total = own + wait + child. Recursion counts once in total.
    module CallTimes
      # Times in ns. own: in the method itself. wait: in the method while another thread or fiber ran (wall time only).
      # child: in the method's callees.
      Row = Struct.new(:method, :total, :own, :wait, :child, :calls)

      # Methods that were called or took time, largest own time first.
      # @param weight [Symbol] :wall or :cpu; the tree must have :calls and :wait as well
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

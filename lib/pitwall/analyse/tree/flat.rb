# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Methods by self weight. The self weights of all rows add up to the tree's total, to the nanosecond.
    module Flat
      # own and total are of the weight asked for; also holds the self weights of the others: {cpu: 12}.
      Row = Struct.new(:method, :own, :total, :also)

      # Methods that have any weight at all, heaviest first; equals in the order of their names.
      # @param also [Array<Symbol>] further weights to give the self value of
      #: (CallTree, Symbol, ?also: Array[Symbol]) -> Array[Row]
      def self.rows(tree, weight, also: [])
        owns = tree.self_by_method(weight)
        totals = tree.total_by_method(weight)
        others = also.to_h { |other| [other, tree.self_by_method(other)] }
        rows = []
        tree.methods.each_with_index do |method, at|
          next if totals[at].zero? && others.each_value.all? { |values| values[at].zero? }

          rows << Row.new(method, owns[at], totals[at], others.transform_values { |values| values[at] })
        end
        rows.reject! { |row| row.method.equal?(tree.methods[0]) }
        rows.sort_by! { |row| [-row.own, -row.total, row.method.name, row.method.path] }
      end
    end
  end
end

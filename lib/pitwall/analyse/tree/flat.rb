# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Methods by self weight. The self weights of all rows add up exactly to the tree's total.
    module Flat
      # own and total: self and total weight. also: self weights of further weights, e.g. {cpu: 12}.
      Row = Struct.new(:method, :own, :total, :also)

      # Methods that have any of the weights, heaviest self weight first. Equal rows are in the order of their names.
      # @param also [Array<Symbol>] further weights whose self weights rows contain
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

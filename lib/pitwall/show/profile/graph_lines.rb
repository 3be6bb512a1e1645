# frozen_string_literal: true

require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The lines of a symbol in the call graph: its callers, itself, its callees. Text and Markdown draw them.
    module GraphLines
      CALLER = "↑ "
      CALLEE = "↓ "
      START = "(start of a thread)"

      # sign: CALLER, CALLEE or "" (the symbol). place: [path, line] or nil. own: self weight; nil of neighbours.
      # places: number of lines that call. calls: nil where calls were not traced.
      Line = Struct.new(:sign, :name, :place, :total, :own, :places, :calls)

      # @param least [Integer] callers and callees with less weight are summed up in one line
      # @param apart [Boolean] does each place that calls the symbol have a line?
      #: (Analyse::Graph::Row, least: Integer, ?apart: bool) -> Array[Line]
      def self.of(row, least:, apart: false)
        itself = Line.new("", row.method.name, row.method.where, row.total, row.own, row.places, row.calls)
        [*edges(row.callers, least, CALLER, "caller", apart), itself,
         *edges(row.callees, least, CALLEE, "callee", false)]
      end

      # The total of a symbol as a sum: "76.8% = 27.4% self + 28.4% rb_string_value_ptr + 21.0% loaded_feature_path"
      # @param whole [Integer] what shares are of
      #: (Analyse::Graph::Row, Integer, least: Integer) -> String
      def self.sum(row, whole, least:)
        shown, hidden = row.callees.select { |edge| edge.total.positive? }.partition { |edge| edge.total >= least }
        parts = shown.map { |edge| "#{Units.percent(edge.total, whole)} #{Text.safe(edge.method.name)}" }
        parts.unshift("#{Units.percent(row.own, whole)} self") if row.own.positive?
        parts << "#{Units.percent(hidden.sum(&:total), whole)} in #{hidden.size} more" if hidden.any?
        "#{Units.percent(row.total, whole)} = #{parts.join(" + ")}"
      end

      # Traced calls without weight, e.g. of a recursive method to itself, are never below the threshold.
      def self.edges(edges, least, sign, noun, apart)
        hidden, shown = edges.partition { |edge| edge.total < least && (edge.total.positive? || edge.calls.to_i.zero?) }
        lines = shown.flat_map { |edge| apart ? places(edge, sign) : [line(edge, sign)] }
        hidden.empty? ? lines : lines << rest(hidden, sign, noun)
      end
      private_class_method :edges

      def self.line(edge, sign)
        name = edge.method ? edge.method.name : START
        Line.new(sign, name, edge.method&.where, edge.total, nil, edge.places.size, edge.calls)
      end
      private_class_method :line

      # One line for each line of the caller. A native function has no lines, and is one place.
      def self.places(edge, sign)
        return [line(edge, sign)] if edge.places.empty? || edge.places.any? { |place| place.line.zero? }

        edge.places.each_with_index.map do |place, at|
          Line.new(sign, edge.method.name, [edge.method.path, place.line], place.total, nil, 1,
                   at.zero? ? edge.calls : nil)
        end
      end
      private_class_method :places

      def self.rest(edges, sign, noun)
        calls = edges.sum(&:calls) if edges.first.calls
        Line.new(sign, "(#{Units.things(edges.size, "more #{noun}")})", nil, edges.sum(&:total), nil,
                 edges.sum { |edge| edge.places.size }, calls)
      end
      private_class_method :rest
    end
  end
end

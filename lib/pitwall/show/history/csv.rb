# frozen_string_literal: true

require "json"

module Pitwall
  module Show
    # Results of a history as CSV (RFC 4180) or JSON Lines, one line for each.
    module HistoryCsv
      COLUMNS = %i[measured_at suite benchmark variant metric unit better host value low high commit_id branch
                   ruby].freeze

      module_function

      #: () -> String
      def head = COLUMNS.join(",")

      #: (Hash[Symbol, untyped]) -> String
      def line(row) = COLUMNS.map { |name| cell(row[name]) }.join(",")

      #: (Hash[Symbol, untyped]) -> String
      def json(row) = JSON.generate(COLUMNS.to_h { |name| [name, row[name]] })

      def cell(value)
        text = value.to_s
        text.match?(/[",\r\n]/) ? "\"#{text.gsub("\"", "\"\"")}\"" : text
      end
      private_class_method :cell
    end
  end
end

# frozen_string_literal: true

require "json"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Every class of string that a recording holds, for those who are about to share it.
    class Audit
      SCHEMA = "pitwall/audit-1"
      EXAMPLES = 3
      NEVER = "Never recorded: values of arguments, contents of strings, environment values, SQL."
      private_constant :EXAMPLES, :NEVER

      #: (Array[Analyse::Strings::Kind]) -> void
      def initialize(kinds)
        @kinds = kinds
      end

      #: (width: Integer, ?palette: untyped) -> String
      def text(width:, palette: Plain)
        lines = @kinds.flat_map do |kind|
          head = "#{kind.name}: #{Units.count(kind.strings.size)}"
          examples = kind.strings.first(EXAMPLES).map { |string| "  #{Text.shorten_right(string, width - 2)}" }
          more = kind.strings.size > EXAMPLES ? [palette.dim("  … and #{Units.count(kind.strings.size - EXAMPLES)} more (--format json lists all)")] : []
          [palette.bold(head), *examples, *more]
        end
        [*lines, "", *Text.wrap("#{NEVER} --redact replaces paths outside the working directory.", width)].join("\n")
      end

      #: () -> String
      def json
        JSON.generate("schema" => SCHEMA, "classes" => @kinds.map { |kind| { "name" => kind.name, "count" => kind.strings.size, "strings" => kind.strings } })
      end
    end
  end
end

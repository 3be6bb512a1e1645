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

      # @param hints [Views::Hints] options that notes suggest
      #: (Array[Analyse::Strings::Kind], hints: untyped) -> void
      def initialize(kinds, hints:)
        @hints = hints
        @kinds = kinds
      end

      #: (width: Integer, ?palette: untyped) -> String
      def text(width:, palette: Plain)
        lines = @kinds.flat_map do |kind|
          head = "#{kind.name}: #{Units.count(kind.strings.size)}"
          examples = kind.strings.first(EXAMPLES).map { |string| "  #{Text.shorten_right(string, width - 2)}" }
          others = kind.strings.size - EXAMPLES
          more = palette.dim("  … and #{Units.count(others)} more (#{@hints.strings})") if others.positive?
          [palette.bold(head), *examples, *more]
        end
        [*lines, "", *Text.wrap("#{NEVER} #{@hints.redaction}", width)].join("\n")
      end

      #: () -> String
      def json
        classes = @kinds.map do |kind|
          { "name" => kind.name, "count" => kind.strings.size, "strings" => kind.strings }
        end
        JSON.generate("schema" => SCHEMA, "classes" => classes)
      end
    end
  end
end

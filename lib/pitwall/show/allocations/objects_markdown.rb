# frozen_string_literal: true

require "pitwall/show"

module Pitwall
  module Show
    # The common part of the Markdown about a process's objects: allocations, and growth.
    class ObjectsMarkdown
      TOP = 20 # rows, where no limit is asked for
      private_constant :TOP

      # @param findings [Array<Hash>] as FindingWords#to_h gives them
      #: (Analyse::Summary, ?limit: Integer?, ?base: String?, ?warnings: Array[String], **untyped) -> void
      def initialize(summary, limit: nil, base: nil, warnings: [], findings: [])
        @summary = summary
        @limit = limit || TOP
        @location = Location.new(base)
        @warnings = warnings
        @findings = findings
      end

      private

      # Program and Ruby, then what the view says of itself.
      def headline(*words)
        ["**#{Markdown.text(@summary.programs.join(", "))}**", Markdown.text(@summary.rubies.join(", ")), *words]
          .join(" · ")
      end

      # Of rows that are left out.
      def more(rows) = rows.size > @limit ? ["", "#{Units.things(rows.size - @limit, "more row")}."] : []
    end
  end
end

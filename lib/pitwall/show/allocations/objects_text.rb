# frozen_string_literal: true

require "pitwall/show"
require "pitwall/show/findings/view"

module Pitwall
  module Show
    # The common part of the texts about a process's objects: allocations, and growth.
    class ObjectsText
      TOP = 20 # rows, where no limit is asked for
      private_constant :TOP

      # @param commands [Array<String>] to type next, the likeliest first
      # @param hints [Views::Hints] options that notes suggest
      # @param findings [Array<Hash>] as FindingWords#to_h gives them
      #: (Analyse::Summary, hints: untyped, ?commands: Array[String], ?limit: Integer?, **untyped) -> void
      def initialize(summary, hints:, commands: [], limit: nil, width: 100, palette: Plain, base: nil, warnings: [],
                     findings: [])
        @summary = summary
        @hints = hints
        @commands = commands
        @limit = limit || TOP
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(base)
        @warnings = warnings
        @findings = findings
      end

      #: () -> String
      def to_s
        findings = FindingsView.new(width: @width, palette: @palette).lines(@findings)
        [*title, *header, *findings, "", *body].join("\n")
      end

      private

      def title = wrap(HeaderView.of_objects(@summary)).map { |line| @palette.bold(line) }

      # Losses change how the report is to be read.
      def losses(losses) = (@warnings + losses).flat_map { |text| note("!", text, :yellow) }

      def next_steps
        return [] if @commands.empty?

        first, *others = @commands
        ["", @palette.dim("Next: #{first}"), *others.map { |command| @palette.dim("      #{command}") }]
      end

      def wrap(text) = Text.wrap(text, @width)

      def note(mark, text, style) = wrap("#{mark} #{text}").map { |line| @palette.public_send(style, line) }
    end
  end
end

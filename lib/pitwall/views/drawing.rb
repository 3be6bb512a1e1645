# frozen_string_literal: true

require "pitwall/show"
require "pitwall/views/hints"

module Pitwall
  module Views
    # Columns of tables that no terminal cuts.
    WIDE = 160
    private_constant :WIDE

    # What a view draws text with: one report, and how it is to look. file: the recording, for hints · base: the folder
    # below which paths are shown relative · source: (path, line) → text, see Show::LinesView · limit: rows of a table,
    # nil: the view's usual number · fit: is what requests are for cut to the width, as on a terminal? · all_frames:
    # does the tree show each frame of a long run of other code? · warnings, difference, findings: for the header
    Drawing = Struct.new(:report, :file, :width, :palette, :base, :source, :limit, :fit, :all_frames, :warnings,
                         :difference, :findings, keyword_init: true) do
      def initialize(width: 100, palette: Show::Plain, fit: true, warnings: [], findings: [], **rest)
        super(width: [width, Show::TextReport::NARROWEST].max, palette: palette, fit: fit, warnings: warnings,
              findings: findings, **rest)
      end

      #: () -> Show::Location
      def location = Show::Location.new(base)

      # What every drawn table takes.
      #: () -> Hash[Symbol, untyped]
      def look = { width: width, palette: palette, location: location }

      # What tables of weights take.
      #: () -> Hash[Symbol, untyped]
      def weighed = { weight: report.weight, total: report.total, hints: Hints, **look }

      # A table whose last column is cut on a terminal only.
      #: () -> Hash[Symbol, untyped]
      def uncut = { **look, width: fit ? width : [width, WIDE].max }

      #: () -> Hash[Symbol, untyped]
      def unbounded = { **look, width: fit ? width : Float::INFINITY }

      # Header and findings, which stand above every view.
      #: () -> Show::TextReport
      def frame
        Show::TextReport.new(report, width: width, palette: palette, hints: Hints, warnings: warnings,
                                     difference: difference, findings: findings)
      end

      #: () -> Show::MethodsText
      def methods_text = Show::MethodsText.new(report, **look, limit: limit, hints: Hints)
    end
  end
end

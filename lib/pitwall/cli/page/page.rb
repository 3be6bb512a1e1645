# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/project"
require "pitwall/cli/page/source_lines"
require "pitwall/cli/views/syscalls_view"
require "pitwall/show"

module Pitwall
  module CLI
    # The HTML page of a recording, as `report`, `view` and the verbs that record make it.
    module Page
      # Lines of source shown around one that weighs something.
      AROUND = 3
      # Bytes of source in a page, and of a line.
      SOURCE_BYTES = 192 * 1024
      LINE = 400
      private_constant :AROUND, :SOURCE_BYTES, :LINE

      module_function

      # @param source [Boolean] whether lines of source may stand in the page
      # @param redacted [Boolean] whether paths are hidden: then neither source nor the working directory is shown
      # @param start [Hash{String => String}] what the page shows first
      # @param syscalls [Show::SyscallsPart, Hash, nil] nil: what the segments have, with the patterns in force
      #: (Array[Record::Segment], Array[Record::Warning], ?source: bool, ?redacted: bool, ?start: Hash[String, String], ?difference: untyped, ?syscalls: untyped, **untyped) -> String
      def render(segments, warnings, source: true, redacted: false, start: {}, difference: nil, syscalls: nil, findings: [], origin: nil)
        reader = SourceLines.new(segments.map(&:header), repository: Project.repository)
        texts = source && !redacted ? lines(segments, reader) : {}
        commits = texts.keys.to_h { |path| [path, reader.commit(path)] }.compact
        Show::RecordingPage.new(segments, warnings: warnings.map(&:message), source: texts, commits: commits, base: (Dir.pwd unless redacted), start: start, difference: difference,
                                          syscalls: syscalls || SyscallsView.part(segments),
                                          findings: findings, mine: origin).to_s
      end

      # What a page of these can weigh.
      #: (Array[Record::Segment]) -> Array[String]
      def weights(segments)
        sampled = %w[wall cpu captures] if segments.any?(&:sampled?)
        traced = ["wall", "wait", "calls", *%w[cpu objects bytes].select { |name| segments.any? { |segment| segment.tracing[name] == true } }] if segments.any?(&:traced?)
        followed = %w[objects bytes gc] if segments.any?(&:allocation_totals)
        [*sampled, *traced, *followed].uniq
      end

      # Of the heaviest files first, the lines that weigh something and those around them.
      def lines(segments, reader)
        room = SOURCE_BYTES
        weighed(segments).each_with_object({}) do |(path, numbers), texts|
          wanted = numbers.flat_map { |line| ([line - AROUND, 1].max..line + AROUND).to_a }.uniq.sort
          found = wanted.filter_map { |line| (text = reader.call(path, line)) && [line, text[0, LINE]] }.to_h
          size = found.each_value.sum(&:bytesize)
          next if found.empty? || size > room

          room -= size
          texts[path] = found
        end
      end
      private_class_method :lines

      # Path → lines, the heaviest path first. Calls have no lines.
      def weighed(segments)
        weight = if segments.any?(&:sampled?) then :wall
                 elsif segments.any?(&:allocation_totals) then :objects
                 end
        return {} unless weight

        rows = Analyse::Lines.rows(Analyse::CallTreeBuilder.build(segments, weights: [weight]), weight).reject { |row| row.path.empty? }
        rows.group_by(&:path).sort_by { |path, lines| [-lines.sum(&:own), path] }.to_h { |path, lines| [path, lines.map(&:line)] }
      end
      private_class_method :weighed
    end
    private_constant :Page
  end
end

# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/source_lines"
require "pitwall/show"
require "pitwall/views"

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

      # The page that a report is asked for as.
      # @raise [UsageError] the weight asked for was not recorded
      #: (Views::Subject) -> String
      def of(subject)
        asked = subject.asked
        check_weight(asked.weight, subject.segments) if asked.weight && asked.weight != "wall"
        asked.check_filters_of_page(subject.segments, subject.application.origin)
        render(subject.of_process, subject.warnings, began_ns: began(subject.segments),
               patterns: subject.application.patterns, findings: subject.findings_of_process,
               origin: subject.application.origin, source: asked.source?, redacted: asked.redacted?, start: asked.start,
               difference: subject.difference, after: asked[:after])
      end

      # @param patterns [#call] → Analyse::SyscallPatterns in force
      # @param source [Boolean] whether lines of source may stand in the page
      # @param redacted [Boolean] whether paths are hidden: then neither source nor the working directory is shown
      # @param start [Hash{String => String}] what the page shows first
      # @param after [Analyse::Caches::After, nil] which changes of caches count; nil: all
      # @param began_ns [Integer, nil] when the first process of the whole recording began
      # @param syscalls [Views::SyscallReport, nil] of these segments, where it was made already
      #: (Array[Record::Segment], Array[Record::Warning], patterns: untyped, **untyped) -> String
      def render(segments, warnings, patterns:, source: true, redacted: false, start: {}, difference: nil,
                 syscalls: nil, findings: [], origin: nil, began_ns: nil, after: nil)
        segments = segments.map { |segment| Analyse::Boot::Drawing.call(segment) }
        reader = SourceLines.new(segments.map(&:header), repository: Project.repository)
        texts = source && !redacted ? lines(Analyse::NativeFrames.fold(segments), reader) : {}
        commits = texts.keys.to_h { |path| [path, reader.commit(path)] }.compact
        Show::RecordingPage.new(
          segments, tabs: Views.tabs(segments), hints: Views::Hints, warnings: warnings.map(&:message), source: texts,
                    commits: commits, base: (Dir.pwd unless redacted), start: start, difference: difference,
                    syscalls: Views::SyscallReport.page_part(segments, patterns: patterns, found: syscalls),
                    findings: findings, mine: origin, began_ns: began_ns, after: after
        ).to_s
      end

      # When the first process of a recording began, in ns.
      #: (Array[Record::Segment]) -> Integer?
      def began(segments) = segments.filter_map { |segment| segment.header.started_at_ns }.min

      # The page of a recording of system calls, which shows these first.
      #: (Array[Record::Segment], Array[Record::Warning], patterns: untyped, **untyped) -> String
      def of_syscalls(segments, warnings, patterns:, difference: nil, syscalls: nil)
        render(segments, warnings, patterns: patterns, start: { "view" => "syscalls" }, difference: difference,
                                   syscalls: syscalls)
      end

      # What a page of these can weigh.
      #: (Array[Record::Segment]) -> Array[String]
      def weights(segments)
        sampled = %w[wall cpu captures] if segments.any?(&:sampled?)
        if segments.any?(&:traced?)
          counted = %w[cpu objects bytes].select { |name| segments.any? { |segment| segment.tracing[name] == true } }
          traced = ["wall", "wait", "calls", *counted]
        end
        followed = %w[objects bytes gc] if segments.any?(&:allocation_totals)
        [*sampled, *traced, *followed].uniq
      end

      def check_weight(weight, segments)
        weighing = Views::Weighing.new(weight.to_sym, Analyse::Summary.new(segments))
        weighing.check
        weighing.check_traced
      end
      private_class_method :check_weight

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

        tree = Analyse::CallTreeBuilder.build(segments, weights: [weight])
        files = Analyse::Lines.rows(tree, weight).reject { |row| row.path.empty? }.group_by(&:path)
        heaviest = files.sort_by { |path, lines| [-lines.sum(&:own), path] }
        heaviest.to_h { |path, lines| [path, lines.map(&:line)] }
      end
      private_class_method :weighed
    end
    private_constant :Page
  end
end

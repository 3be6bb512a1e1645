# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/views/drawing"
require "pitwall/views/recorded"
require "pitwall/views/weighing"

module Pitwall
  module Views
    # What views ask of the application that the command is called in. base: the folder below which paths are shown
    # relative · origin: whose code a method is (Analyse::Origin) · findings: (segments, selection or nil) → what stands
    # out · source: headers → what reads lines of source · patterns: → Analyse::SyscallPatterns in force
    Application = Struct.new(:base, :origin, :findings, :source, :patterns, keyword_init: true)

    # Where text is drawn. width: columns · palette: colours · fit: is it a terminal, which cuts long lines?
    Screen = Struct.new(:width, :palette, :fit, keyword_init: true) do
      def initialize(width: 100, palette: Show::Plain, fit: false) = super
    end

    # A recording that is looked at: what was asked, what was read, and what views draw it with.
    class Subject
      # @return [Asked]
      attr_reader :asked
      # @return [Array<Record::Segment>] as they were read
      attr_reader :segments
      # @return [Array<Record::Warning>]
      attr_reader :warnings
      # @return [Array<String>] the recordings, as they were named
      attr_reader :files
      # @return [Application]
      attr_reader :application
      # @return [Screen]
      attr_reader :screen
      # @return [Launch::Control::Difference, nil] what a run without Pitwall gave
      attr_reader :difference

      # @param typed [String] the recordings, as one would type them again
      #: (Asked, Array[Record::Segment], Array[Record::Warning], files: Array[String], typed: String, **untyped) -> void
      def initialize(asked, segments, warnings, files:, typed:, application:, screen: Screen.new, difference: nil)
        @asked = asked
        @segments = segments
        @warnings = warnings
        @files = files
        @typed = typed
        @application = application
        @screen = screen
        @difference = difference
      end

      # The view that is shown.
      #: () -> View
      def view = views.last

      # Views asked for, else the usual one.
      #: () -> Array[View]
      def views = @views ||= asked.views.any? ? asked.views : [Views.usual(Recorded.new(segments), asked.weight)]

      # Segments of the process asked for.
      #: () -> Array[Record::Segment]
      def of_process = @of_process ||= asked.narrowing.of_process(segments)

      # The same with the samples that are asked for: of a time, with a frame.
      # @raise [UsageError]
      #: () -> Array[Record::Segment]
      def kept = @kept ||= filters.in_focus(asked.narrowing.of_process(filters.in_time(segments)))

      # The same without the frames that are left out.
      # @raise [UsageError]
      #: () -> Array[Record::Segment]
      def chosen
        @chosen ||= begin
          filtered = filters.frame_filter(kept)&.call(kept) || kept
          asked.only_mine? ? Analyse::OnlyMine.new(application.origin).call(filtered) : filtered
        end
      end

      #: () -> Analyse::Filters
      def filters = @filters ||= asked.filters(application.origin)

      # The report of the part that is asked for.
      # @raise [UsageError] there is no such part, method, state or request
      #: () -> Analyse::Report
      def report
        @report ||= begin
          asked.narrowing.check_state(segments)
          parts, request = part
          focused = filters.in_focus(parts)
          Analyse::Report.new(focused, query(focused, request)).tap do |report|
            report.tree
            check_left(report, parts)
          end
        end
      end

      # Whether the report's processes have its weight.
      #: () -> Weighing
      def weighing = Weighing.new(report.weight, report.summary)

      # What stands out in the report. Native frames are folded for it: it names code that somebody can change.
      #: () -> Array[Hash[String, untyped]]
      def findings
        @findings ||= application.findings.call(
          *Analyse::NativeFrames.narrow(report.shown_segments, report.shown_selection)
        )
      end

      # What stands out in the processes asked for.
      #: () -> Array[Hash[String, untyped]]
      def findings_of_process
        @findings_of_process ||= application.findings.call(Analyse::NativeFrames.fold(kept), nil)
      end

      # One for each process where these are to stand apart, else one.
      #: () -> Array[Drawing]
      def drawings
        whole = { warnings: warnings.map(&:message), difference: difference, findings: findings }
        reports = asked.apart? ? report.by_process : [report]
        source = application.source.call(report.summary.headers)
        # What is of the whole stands in the first part.
        reports.each_with_index.map do |part, at|
          Drawing.new(report: part, file: "#{@typed}#{asked.typed_filters}", base: application.base, source: source,
                      limit: asked.limit, all_frames: asked[:all_frames], **screen.to_h, **(at.zero? ? whole : {}))
        end
      end

      # As one would type the recordings again.
      #: () -> String
      def file = @typed

      private

      # The time that is asked for, or the request of it.
      def part
        timed = filters.in_time(segments)
        asked[:request] ? of_request(timed) : [timed, nil]
      end

      # An empty report says which filter emptied it.
      # @param timed [Array<Record::Segment>] before those in focus were chosen
      # @raise [UsageError]
      def check_left(report, timed)
        return unless filters.samples? && report.total.zero? && report.whole.positive? && !view.without_samples?

        left = filters.focus.any? && report.total_of(timed).positive?
        raise UsageError, filters.emptied(segments, in_time: left || filters.time.nil?)
      end

      def of_request(segments)
        refused = [*("--apart" if asked.apart?), *views.reject(&:of_request?).map(&:option)]
        asked.narrowing.of_request(segments, refused)
      end

      def query(parts, request)
        Analyse::Report::Query.new(weight: weight(parts), selection: asked.narrowing.selection(parts), request: request,
                                   origin: application.origin, filters: filters, **asked.query)
      end

      # Wall time, but where there is none.
      def weight(parts)
        return asked.weight.to_sym if asked.weight

        usual = Recorded.new(parts).usual_weight
        usual == :objects && !view.weighs? ? :wall : usual
      end
    end
  end
end

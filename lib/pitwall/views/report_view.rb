# frozen_string_literal: true

require "pitwall/views/view"

module Pitwall
  module Views
    # A view of Analyse::Report. A subclass gives lines of text ({#lines}) and fields of the JSON object ({#fields}).
    class ReportView < View
      ROWS = 20 # of a table, where no limit is asked for

      # Body of the text, below the header.
      #: (Drawing) -> Array[String]
      def lines(_drawing) = raise(NotImplementedError, "#{self.class}#lines")

      # What the JSON object has where the view is asked for.
      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(_rows) = {}

      # Where its fields stand in the JSON object, among those of the other views.
      #: () -> Numeric
      def field_place = Views.all.index(self)

      # Is there something to show where nothing has the weight asked for?
      #: () -> bool
      def without_weight? = false

      #: () -> bool
      def without_samples? = without_weight?

      # Is there something to show where no call was traced?
      #: () -> bool
      def without_calls? = false

      # @raise [UsageError]
      #: (Subject) -> String
      def draw(subject)
        check_options(subject.asked)
        subject.report
        subject.views.grep(ReportView).each { |view| view.check(subject) }
        super
      end

      # @raise [UsageError]
      #: (Subject) -> void
      def check(subject)
        check_weight(subject)
        check_needs(subject)
        subject.weighing.check_traced
      end

      #: (Subject) -> String
      def text(subject) = subject.drawings.map { |drawing| drawn(drawing) }.join("\n\n")

      # The text of one report.
      #: (Drawing) -> String
      def drawn(drawing) = drawing.frame.to_s([*beside_request(drawing), *body(drawing)])

      # Its lines, or why there are none.
      #: (Drawing) -> Array[String]
      def body(drawing)
        return [drawing.frame.uncalled] if drawing.report.summary.uncalled? && !without_calls?
        return [drawing.frame.nothing] if drawing.report.total.zero? && !without_weight?

        lines(drawing)
      end

      # The object has the fields of all views that are asked for.
      #: (Subject) -> String
      def json(subject)
        views = subject.views.grep(ReportView)
        Show::JsonReport.new(
          subject.report, fields: ReportView.fields(views), warnings: subject.warnings.map(&:to_h),
                          limit: subject.asked.limit, difference: subject.difference, findings: subject.findings
        ).to_s(apart: subject.asked.apart?)
      end

      # The flat table, for pull requests. It stands for a usual view that has no Markdown of its own.
      #: (Subject) -> String
      def markdown(subject) = Show::MarkdownReport.new(subject.report, **table_options(subject)).to_s

      # @return [Proc] rows → the fields of these views
      #: (Array[ReportView]) -> ^(Show::JsonRows) -> Hash[String, untyped]
      def self.fields(views)
        ordered = views.uniq.sort_by(&:field_place)
        ->(rows) { ordered.map { |view| view.fields(rows) }.reduce({}, :merge) }
      end

      private

      # @raise [UsageError] the weight asked for was not recorded
      def check_weight(subject) = subject.weighing.check

      # @raise [UsageError] what the view needs was not recorded
      def check_needs(_subject) = nil

      # What the request that is looked at asked databases.
      def beside_request(drawing)
        request = drawing.report.query.request or return []

        Show::QueriesView.new(**drawing.uncut, hints: Hints)
                         .of_request(drawing.report.queries_of(request), request.duration_ns)
      end

      # What all Markdown views of a report take.
      def markdown_options(subject)
        { warnings: subject.warnings.map(&:message), limit: subject.asked.limit || ROWS }
      end

      def table_options(subject)
        { **markdown_options(subject), base: subject.application.base, findings: subject.findings }
      end
    end
  end
end

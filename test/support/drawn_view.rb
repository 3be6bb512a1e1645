# frozen_string_literal: true

require "pitwall/views"

# A view drawn of a report, without a command line.
module DrawnView
  module_function

  # @param view [Symbol] :flat, :bottom_up, …
  # @param options [Hash] of Views::Drawing
  #: (Analyse::Report, ?Symbol, **untyped) -> String
  def drawn(report, view = :flat, file: "x.pit", **options)
    named(view).drawn(Pitwall::Views::Drawing.new(report: report, file: file, **options))
  end

  # Its lines below the header.
  #: (Analyse::Report, Symbol, **untyped) -> Array[String]
  def body(report, view, file: "x.pit", **options)
    named(view).body(Pitwall::Views::Drawing.new(report: report, file: file, **options))
  end

  # The JSON object with the fields of these views, as text.
  #: (Analyse::Report, *Symbol) -> String
  def json(report, *views)
    fields = Pitwall::Views::ReportView.fields(views.map { |view| named(view) })
    Pitwall::Show::JsonReport.new(report, fields: fields).to_s
  end

  # A view of segments, in the format that the options ask for.
  # @param options [Hash] as the parser of `pitwall report` gives them
  #: (Array[Pitwall::Record::Segment], Symbol, ?width: Integer, **untyped) -> String
  def of_segments(segments, view, width: 100, **options)
    views = Pitwall::Views
    application = views::Application.new(base: Dir.pwd, origin: Pitwall::Analyse::Origin.new, findings: ->(*) { [] })
    subject = views::Subject.new(views::Asked.new(options), segments, [], files: ["built.pit"], typed: "built.pit",
                                 application: application, screen: views::Screen.new(width: width))
    named(view).draw(subject)
  end

  def named(view) = Pitwall::Views.named(view.to_s.tr("_", "-"))
end

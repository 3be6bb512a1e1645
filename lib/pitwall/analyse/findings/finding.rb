# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # A fact that stands out in a recording.
      #
      # kind:    Symbol of the rule, e.g. :heavy_line
      # share:   0.49, of `of`
      # of:      :cpu, :wall, :running, :threads, :requests, :tests, :boot, :objects, :bytes or :growth
      # amount:  ns, objects or bytes that the share is
      # path, line, method: the application's code; nil and 0 if no line is known
      # subject: the method, class, feature or request of the finding
      # figures: further figures by name
      # label:   [name, value] of the requests or of the test, or nil
      # view:    options of `pitwall report` that show more
      # proof:   how to prove an improvement: :command (run again before and after) or :recording (record again)
      # impact:  for sorting, as a share of the time
      Finding = Struct.new(:kind, :share, :of, :amount, :path, :line, :method, :subject, :figures, :label, :view,
                           :proof, :impact, keyword_init: true) do
        def initialize(figures: {}, line: 0, proof: :command, **parts) = super

        # Findings with the same topic at the same line tell the same, and only the first is shown.
        #: () -> Array[untyped]
        def topic = [TOPICS.fetch(kind, :time), path, line]
      end
      TOPICS = { lock: :lock, waiting: :waiting, garbage: :garbage, allocating_line: :objects, growth: :retained,
                 retained: :retained, route: :route, slow_request: :request, slow_test: :test }.freeze
      private_constant :TOPICS
    end
  end
end

# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # One thing that stands out.
      #
      # kind: Symbol, the rule's, e.g. :heavy_line · share: 0.49, of `of` (:cpu, :wall, :running, :threads, :requests, :tests,
      # :boot, :objects, :bytes, :growth) · amount: ns, objects or bytes that share is ·
      # path, line, method: the application's code, nil and 0 where no line is known ·
      # subject: the method, class, feature or request that the finding is about · figures: further figures by name ·
      # label: [name, value] of the requests or the test meant, or nil · view: options of `pitwall report` that show more ·
      # proof: :command (run it again before and after) or :recording (record it again) · impact: for the order.
      Finding = Struct.new(:kind, :share, :of, :amount, :path, :line, :method, :subject, :figures, :label, :view,
                           :proof, :impact, keyword_init: true) do
        def initialize(figures: {}, line: 0, proof: :command, **parts) = super

        # Findings of one topic at one line say the same.
        #: () -> Array[untyped]
        def topic = [TOPICS.fetch(kind, :time), path, line]
      end
      TOPICS = { lock: :lock, waiting: :waiting, garbage: :garbage, allocating_line: :objects, growth: :retained, retained: :retained,
                 route: :route, slow_request: :request, slow_test: :test }.freeze
      private_constant :TOPICS
    end
  end
end

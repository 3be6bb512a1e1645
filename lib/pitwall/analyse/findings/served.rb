# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # One kind of request or job takes most of the time, and more than its share of the requests explains.
      module Route
        # Smallest share of the time.
        SHARE = 0.4
        # Smallest ratio of its share of the time to its share of the requests.
        MORE = 1.5
        # Labels that name the kind of a request. The first one that the recording has is used.
        NAMES = %w[route job].freeze
        private_constant :SHARE, :MORE, :NAMES

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          name = NAMES.find { |wanted| evidence.work_labels.any? { |labels| labels.key?(wanted) } } or return []
          counts, times = sums(evidence, name)
          value, ns = times.max_by { |key, sum| [sum, key] }
          all = times.each_value.sum
          share = ns.to_i.fdiv([all, 1].max)
          usual = counts[value].fdiv([counts.each_value.sum, 1].max)
          return [] if times.size < 2 || all < LEAST_NS || share < SHARE || share < MORE * usual

          [Finding.new(kind: :route, share: share, of: :requests, amount: ns, subject: value, label: [name, value],
                       figures: { requests: counts[value], mean_ns: ns / [counts[value], 1].max }, proof: :recording,
                       view: ["--label", "#{name}=#{value}", "--view", "lines", "--only-mine"], impact: share * 0.2)]
        end

        def self.sums(evidence, name)
          counts, times = Hash.new(0), Hash.new(0)
          evidence.segments.each do |segment|
            segment.works.each do |work|
              value = segment.labels(work.label_id)[name] or next
              counts[value] += work.count
              times[value] += work.total_ns
            end
          end
          [counts, times]
        end
        private_class_method :sums
      end

      # One request took much longer than others of its kind.
      module SlowRequest
        # Smallest ratio of its time to the mean of the others.
        MEANS = 10
        # Fewest requests of its kind.
        LEAST_REQUESTS = 5
        private_constant :MEANS, :LEAST_REQUESTS

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          row = evidence.requests.rows.find { |one| evidence.mark?(one.segment, one.mark) } or return []
          same_kind = evidence.segments.flat_map do |segment|
            segment.works.select { |work| segment.labels(work.label_id) == row.labels }
          end
          count = same_kind.sum(&:count)
          return [] if count < LEAST_REQUESTS || row.duration_ns < LEAST_NS

          mean = (same_kind.sum(&:total_ns) - row.duration_ns).fdiv(count - 1)
          return [] if row.duration_ns < mean * MEANS

          [Finding.new(kind: :slow_request, share: row.duration_ns.fdiv(same_kind.sum(&:total_ns)), of: :requests,
                       amount: row.duration_ns, subject: row.name, proof: :recording, impact: 0.01,
                       figures: { request: row.number, mean_ns: mean.round, requests: count },
                       view: ["--request", row.number.to_s, "--tree"])]
        end
      end
    end
  end
end

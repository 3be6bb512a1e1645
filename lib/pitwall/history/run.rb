# frozen_string_literal: true

require "digest"
require "json"

module Pitwall
  module History
    # One figure of a run. benchmark: "join n=100" · variant: "" or what sets it apart from other sides of a comparison
    # value: median or mean, as `pitwall bench` has it · low, high: its interval, or nil · processes: Integer or nil
    # better: "lower" or "higher"
    Figure = Struct.new(:suite, :benchmark, :variant, :metric, :unit, :better, :value, :low, :high, :processes,
                        keyword_init: true) do
      # The series' id: the same for every writer.
      #: () -> String
      def series_id = History.digest([suite, benchmark, variant, metric, unit])

      # Whether every database takes it.
      #: () -> bool
      def sound?
        [suite, benchmark, variant, metric, unit, better].all? { |text| History.text?(text) } &&
          [value, low || 0, high || 0].all? { |number| number.is_a?(Numeric) && number.to_f.finite? } &&
          History.count?(processes, 32)
      end
    end

    # What was measured at one time on one host with one commit: one side of a comparison, or one run of `bench`.
    #
    # source:      digest of the file that it was read from
    # measured_at: "2026-11-24T19:05:00Z"
    # host:        Hash as Bench::Host.facts returns it; {} where it is unknown
    # figures:     Array of Figure
    Run = Struct.new(:source, :side, :measured_at, :commit_id, :branch, :ruby, :kernel, :command, :tool, :host,
                     :figures, keyword_init: true) do
      # Added a second time, a run has the same id.
      #: () -> String
      def id = History.digest([source, side])

      # The id of the host's fingerprint.
      #: () -> String
      def host_id = fingerprint.compact.empty? ? "unknown" : History.digest(fingerprint.values).slice(0, 12)

      # The facts of a host on which its speed depends.
      #: () -> Hash[String, untyped]
      def fingerprint = Run::FINGERPRINT.to_h { |name| [name, host[name]] }

      # Whether every database takes it: text in UTF-8 without NUL, finite numbers.
      #: () -> bool
      def sound?
        texts = to_h.reject { |name, _| %i[host figures].include?(name) }.values + host.values_at("cpu", "governor")
        texts.compact.all? { |text| History.text?(text) } && History.count?(host["cores"], 32) &&
          History.count?(host["memory_bytes"], 64) && figures.all?(&:sound?)
      end

      # For the spool.
      #: () -> Hash[Symbol, untyped]
      def to_object = to_h.merge(figures: figures.map(&:to_h))

      # @raise [KeyError, ArgumentError, NoMethodError] another object
      #: (Hash[String, untyped]) -> Run
      def self.from_object(object)
        figures = object.fetch("figures").map { |figure| Figure.new(**figure.transform_keys(&:to_sym)) }
        new(**object.transform_keys(&:to_sym), figures: figures)
      end
    end

    # Two hosts with the same of these are one. Not the kernel: each update would begin a new series.
    Run::FINGERPRINT = %w[cpu cores memory_bytes governor].freeze

    class << self
      # @api private
      #: (Array[untyped]) -> String
      def digest(parts) = Digest::SHA256.hexdigest(JSON.generate(parts)).slice(0, 32)

      # @api private
      #: (untyped) -> bool
      def text?(text) = text.is_a?(String) && text.dup.force_encoding("UTF-8").valid_encoding? && !text.include?("\0")

      # Whether a column of so many bits takes it. nil is unknown.
      # @api private
      #: (untyped, Integer) -> bool
      def count?(number, bits) = number.nil? || (number.is_a?(Integer) && number.bit_length < bits)
    end
  end
end

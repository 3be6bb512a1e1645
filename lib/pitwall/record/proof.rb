# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Record
    # A comparison's result as it stands in the trailers of a commit message, or in a git note. Reads what
    # Show::ProofTrailers writes.
    #
    # base, tree:  ids of git's trees of both sides, the base first
    # claims:      Array of Claim
    # environment: String, Rubies and host
    # benchmark:   [path in the repository, id of its content]; nil: no file of the repository was the benchmark
    # command:     String, the command line that repeats the comparison, from the top of the repository
    Proof = Struct.new(:base, :tree, :claims, :environment, :benchmark, :command, keyword_init: true) do
      # Reads trailers.
      # @param lines "Key: value", without line breaks; other keys than a proof's are skipped
      # @return [Proof, nil] nil where none of the lines is a proof's
      # @raise [BadRecording] the proof is damaged
      #: (Array[String]) -> Proof?
      def self.read(lines)
        values = lines.filter_map { |line| line.match(Proof::TRAILER)&.captures }.group_by(&:first)
        return if values.empty?

        values.transform_values! { |pairs| pairs.map(&:last) }
        claims = values.fetch("Effect", []).map { |text| Claim.read(text) }
        raise BadRecording, "no #{Proof::KEY}Effect" if claims.empty?

        base, tree = values.fetch("Trees") { raise BadRecording, "no #{Proof::KEY}Trees" }.last.split
        raise BadRecording, "#{Proof::KEY}Trees: takes two ids" unless [base, tree].all?(Proof::ID)

        new(base: base, tree: tree, claims: claims, environment: values.fetch("Environment", [""]).last,
            benchmark: values["Benchmark"]&.last&.match(Proof::BENCHMARK)&.captures,
            command: values.fetch("Command") { raise BadRecording, "no #{Proof::KEY}Command" }.last)
      end
    end

    # What the keys of all trailers begin with.
    Proof::KEY = "Pitwall-"
    # Keys in the order in which they are written.
    Proof::KEYS = %w[Effect Trees Benchmark Environment Command].freeze
    Proof::TRAILER = /\A#{Proof::KEY}(#{Proof::KEYS.join("|")}):\s*(.*?)\s*\z/.freeze
    Proof::ID = /\A\h{40}(?:\h{24})?\z/.freeze
    Proof::BENCHMARK = /\A(.+) (\h{40}(?:\h{24})?)\z/.freeze

    # One effect of a proof:
    #   500 rows: wall 1.36 ms → 127 µs, ×0.0932 (99% interval ×0.0778 … ×0.109), 24 pairs, faster
    #
    # name:    the case
    # metric:  a key of METRICS
    # values:  both measured values as text: "1.36 ms → 127 µs"
    # point, low, high: Floats, ratio of the side to the base and its interval; nil without a ratio
    # level:   Float, level of the interval; nil without one
    # exact:   whether each side repeated its count exactly
    # pairs:   Integer
    # verdict: Symbol, as Analyse::Effect has it
    # small:   whether the difference is real but below the margin
    Claim = Struct.new(:name, :metric, :values, :point, :low, :high, :level, :exact, :pairs, :verdict, :small,
                       keyword_init: true) do
      # @raise [BadRecording]
      #: (String) -> Claim
      def self.read(text)
        found = Claim::TEXT.match(text) or raise BadRecording, "#{Proof::KEY}Effect: cannot read `#{text}`"
        point, low, high = %w[change low high].map { |part| Claim.ratio(found[part]) }
        exact = text.match?(/, exact, [\d,]+ pairs?,/)
        low = high = point if exact
        new(name: found["name"], metric: found["metric"], values: found["values"], point: point, low: low, high: high,
            level: found["level"]&.to_f&./(100), exact: exact, pairs: found["pairs"].delete(",").to_i,
            verdict: found["verdict"].to_sym, small: found["remark"].to_s.start_with?("below"))
      end

      # "+2.1%" → 1.021, "×0.0932" → 0.0932, "to 0" → 0.0
      # @api private
      #: (String?) -> Float?
      def self.ratio(text)
        return if text.nil?
        return 0.0 if text == "to 0"

        number = text.delete("×%,").tr("−", "-").to_f
        text.start_with?("×") ? number : 1 + (number / 100)
      end

      # Whether there is a verdict.
      #: () -> bool
      def decided? = verdict != :undecided
    end

    number = /[+−]\d[\d.,]*%|×\d[\d.,]*(?:e-?\d+)?|to 0/
    Claim::TEXT = /\A(?<name>.*):\ (?<metric>[a-z_]+)\ (?<values>[^→]+\ →\ .+?)
                   (?:,\ (?<change>#{number}))?
                   (?:,\ exact|\ \((?<level>[\d.]+)%\ interval\ (?<low>#{number})\ …\ (?<high>#{number})\))?
                   ,\ (?<pairs>[\d,]+)\ pairs?,\ (?<verdict>faster|slower|fewer|more|same|undecided)
                   (?:\ \((?<remark>[^)]*)\))?\z/x.freeze
  end
end

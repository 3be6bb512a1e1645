# frozen_string_literal: true

require "json"
require "open3"
require "tempfile"
require_relative "planted"

module Benchmarks
  # What each tool says of a planted pair: { verdict:, and whatever else it said }. The verdict is "slower" (B is),
  # "faster", "same" or "undecided".
  module Verdicts
    # `pitwall compare`, through the API that the command uses.
    class Pitwall
      NAME = "pitwall"

      def initialize(_context) = nil

      def measures?(_planted) = true

      #: (Planted, Float, budget: Float, seed: Integer, ?max_blocks: Integer?) -> Hash
      def call(planted, share, budget:, seed:, max_blocks: nil)
        settings = Planted.settings(budget: budget, seed: seed, max_blocks: max_blocks)
        experiment = ::Pitwall::Experiment::Compare.new([planted.subject("A"), planted.subject("B", share)], settings)
        report = experiment.call(command: "benchmarks/run")
        wall = report.headline.first
        objects = report.effects.find { |effect| effect.metric == "objects" }
        host = experiment.readings.to_h.slice("load_before", "load_after", "others", "steal")
        { verdict: wall.verdict, ratio: wall.ratio.to_h.transform_values { |value| value&.round(6) },
          pairs: wall.pairs, reason: wall.reason,
          smallest_detectable: wall.smallest_detectable&.round(6), objects: objects&.exact ? objects.verdict : nil,
          host: host.transform_values { |value| value.round(3) } }.compact
      end
    end

    # benchmark-ips: `x.compare!` in one process.
    class BenchmarkIps
      NAME = "benchmark-ips"
      SECONDS = 5
      SCRIPT = File.expand_path("beside_ips.rb", __dir__)
      private_constant :SECONDS, :SCRIPT

      def initialize(context)
        @peers = context.peers
        @quick = context.quick?
      end

      def measures?(planted) = !planted.command?
      def missing = @peers.missing("benchmark-ips")

      def call(planted, share, **)
        units = [0.0, share].map { |part| planted.units_with(part).to_s }
        paths = @peers.paths("benchmark-ips").flat_map { |path| ["-I", path] }
        command = [RbConfig.ruby, *paths, SCRIPT, planted.file, planted.class_name.to_s,
                   *units, @quick ? "0.1" : SECONDS.to_s]
        output, status = Open3.capture2(*command)
        raise Context::Failure, "benchmark-ips failed on #{planted.name}" unless status.success?

        self.class.read(output)
      end

      # After "Comparison:" follow the fastest and then the other: "1.02x  (± 0.00) slower" or "same-ish: difference
      # falls within error".
      #: (String) -> Hash
      def self.read(output)
        _fastest, other = output.split("Comparison:\n").last.lines.grep(/i\/s/)
        verdict = other.include?("same-ish") ? "same" : { "A" => "faster", "B" => "slower" }.fetch(other.strip[0])
        { verdict: verdict, said: other.strip.squeeze(" ") }
      end
    end

    # hyperfine on whole commands: all runs of A, then all of B. It has no verdict. "ran 1.02 ± 0.03 times faster"
    # counts as a verdict if 1 is not within its ±.
    class Hyperfine
      NAME = "hyperfine"

      def initialize(context)
        @left_out = !context.peers.use?
        @quick = context.quick?
      end

      def measures?(planted) = planted.command?

      def missing
        return "left out by --no-peers" if @left_out

        folders = ENV.fetch("PATH", "").split(":")
        found = folders.any? { |folder| File.executable?(File.join(folder, NAME)) }
        "not installed (a package of that name)" unless found
      end

      def call(planted, share, **)
        Tempfile.create("hyperfine") do |file|
          commands = [0.0, share].map do |part|
            "env PLANTED_WORK=#{planted.units_with(part)} #{planted.words.join(" ")}"
          end
          options = ["--shell=none", "--style", "basic", "--warmup", "1", *(%w[--runs 2] if @quick),
                     "--export-json", file.path]
          _output, errors, status = Open3.capture3(NAME, *options, *commands)
          raise Context::Failure, "hyperfine failed on #{planted.name}: #{errors}" unless status.success?

          self.class.read(JSON.parse(File.read(file.path)).fetch("results"))
        end
      end

      # As hyperfine computes what it prints: the ratio of means, and its deviation by propagation of both.
      #: (Array[Hash]) -> Hash
      def self.read(results)
        a, b = results
        ratio = b["mean"] / a["mean"]
        spread = ratio * Math.sqrt(((a["stddev"] / a["mean"])**2) + ((b["stddev"] / b["mean"])**2))
        verdict = if (ratio - 1).abs <= spread then "same"
                  else ratio > 1 ? "slower" : "faster"
                  end
        { verdict: verdict, said: format("B takes %.3f ± %.3f times as long", ratio, spread),
          named: ratio > 1 ? "slower" : "faster" }
      end
    end
  end
end

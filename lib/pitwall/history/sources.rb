# frozen_string_literal: true

require "digest"
require "json"
require "time"
require "pitwall/analyse"
require "pitwall/errors"
require "pitwall/history/run"
require "pitwall/record/measurements"

module Pitwall
  module History
    # Files of results as runs: measurements of `bench` and `compare`, their JSON reports, and results of other tools.
    module Sources
      # Bytes of the largest JSON or YAML file.
      MOST = 64 << 20
      # What is known of a file's runs beside its content. All may be nil. at: Time
      Facts = Struct.new(:at, :commit, :branch, :ruby, :host, :suite, keyword_init: true)
      private_constant :MOST

      # A sound file that holds no results over time. Other files can be added without it.
      class Unfit < BadRecording; end

      autoload :BenchmarkDriver, "pitwall/history/sources/benchmark_driver"
      autoload :BenchmarkIPS, "pitwall/history/sources/benchmark_ips"
      autoload :Measurements, "pitwall/history/sources/measurements"
      autoload :Report, "pitwall/history/sources/report"
      autoload :RubyBench, "pitwall/history/sources/ruby_bench"

      # Formats of one document, in the order in which they are tried.
      DOCUMENTS = %i[Report RubyBench BenchmarkIPS BenchmarkDriver].freeze
      private_constant :DOCUMENTS

      class << self
        # The runs of a file.
        # @raise [Unfit] the file is sound, but not for a history
        # @raise [BadRecording] the file is damaged, or of no known format
        # @raise [UsageError] there is no such file
        #: (String, Facts) -> Array[Run]
        def read(path, facts)
          raise UsageError, "#{path}: no such file" unless File.exist?(path)
          raise UsageError, "#{path}: a folder; name a file of results" if File.directory?(path)

          facts = facts.dup
          facts.at ||= File.mtime(path)
          runs = Record::Measurements.file?(path) ? Measurements.runs(path, facts) : document(path, facts)
          runs = runs.reject { |run| run.figures.empty? }
          raise BadRecording, "#{path}: holds no results" if runs.empty?
          raise BadRecording, "#{path}: a number is not finite, or a text is not UTF-8" unless runs.all?(&:sound?)

          runs
        rescue SystemCallError => error
          raise UsageError, "#{path}: #{SystemCallError.new(error.errno).message}"
        end

        # Refuses what was measured about the commits of a range. Its cases are commits, and its sides have no revision.
        # @param found [Hash] a file's last line, or a report in JSON
        # @raise [Unfit]
        # @api private
        #: (String, Hash[String, untyped]) -> void
        def refuse_ranges(path, found)
          return unless found.key?("commits") || found.key?("search")

          raise Unfit, "#{path}: compares the commits of a range, no result over time"
        end

        # A run with what all formats have in common.
        # @api private
        #: (String, Facts, ?side: String, **untyped) -> Run
        def run(content, facts, side: "", **more)
          host = facts.host || {}
          Run.new(source: Digest::SHA256.hexdigest(content), side: side, measured_at: facts.at.utc.iso8601,
                  commit_id: facts.commit, branch: facts.branch, ruby: facts.ruby, kernel: host["kernel"],
                  host: host, figures: [], **more)
        end

        # @api private
        #: (Facts, **untyped) -> Figure
        def figure(facts, **more)
          Figure.new(suite: facts.suite.to_s, variant: "", better: "lower", **more)
        end

        private

        def document(path, facts)
          raise BadRecording, "#{path}: too large for results" if File.size(path) > MOST

          text = File.read(path, encoding: "UTF-8")
          raise BadRecording, "#{path}: neither measurements of pitwall nor text" unless text.valid_encoding?

          return BenchmarkDriver.runs(path, text, facts) if BenchmarkDriver.text?(text)

          object = parse(path, text)
          format = DOCUMENTS.map { |name| const_get(name) }.find { |candidate| candidate.of?(object) }
          raise BadRecording, "#{path}: no results of pitwall, benchmark-ips, benchmark-driver or ruby-bench" if
            format.nil?

          format.runs(path, text, object, facts)
        end

        def parse(path, text)
          JSON.parse(text, max_nesting: 50)
        rescue JSON::ParserError, EncodingError
          raise BadRecording, "#{path}: neither measurements of pitwall nor JSON of results"
        end
      end
    end
  end
end

# frozen_string_literal: true

require "rbconfig"
require "pitwall/cli/measuring/measuring"
require "pitwall/cli/support/words"
require "pitwall/bench/subject"
require "pitwall/workspace/interpreter"

module Pitwall
  module CLI
    # `pitwall bench FILE…`, `pitwall bench -- CMD`.
    class Bench < Measuring
      BUDGET = 5.0
      COMMAND_BUDGET = 10.0
      private_constant :BUDGET, :COMMAND_BUDGET

      class << self
        #: () -> String
        def summary = "how fast, how much memory, how it grows with N: files or commands"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall bench -e '[*1..1000].sum' -e '[*1..1000].inject(:+)'", "two pieces of code"],
            ["pitwall bench -- bin/rake db:seed", "a whole command"]
          ]
        end

        #: () -> String
        def usage = "FILE… | -e CODE… | -- CMD…"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("What to measure")
        parser.on("-e CODE", "code instead of files; repeatable") do |code|
          (@options[:code] ||= []) << check_code(code)
        end
        parser.on("--ruby RUBY", "the interpreter, with flags in the same quotes (default: this one)") do |text|
          @options[:ruby] = Words.parse(text, option: "--ruby")
        end
        parser.separator("")
        parser.separator("How to measure")
        define_running_options(parser)
        runs = "number of processes for each case (default: 5 to 40, as the budget allows; at least 8 after compare!)"
        parser.on("--runs N", Integer, runs) do |count|
          @options[:max_blocks] = positive("--runs", count)
        end
        define_output_options(parser)
      end

      #: (Array[String]) -> Integer
      def run(files)
        subjects = subjects(files)
        check_output(files)
        settings = settings(max_blocks: @options[:max_blocks])
        head = { "kind" => "bench", "settings" => settings.to_facts, "command" => command_line,
                 "host" => Pitwall::Bench::Host.facts, "facts" => subjects.first.facts }
        report = record(head) do |writer|
          run_experiment(Experiment::Bench.new(subjects, settings, progress: progress, record: writer), writer)
        end
        progress.end
        publish(MeasuredView.render(report, @options[:format], **rendering))
        raise @failure if @failure

        gated(report)
      ensure
        progress.end
      end

      private

      def default_budget = @command ? COMMAND_BUDGET : BUDGET

      def gate_example = "\"objects > 1200\", \"wall > 1.5ms\""

      def gate(text)
        gate = Gate.parse(text, metrics: Record::METRICS.keys)
        return gate unless gate.relative?

        raise UsageError, "--fail-if #{text}: bench has nothing to compare with; " \
                          "write a limit such as objects > 1200, or use pitwall compare"
      end

      def subjects(files)
        codes = @options.fetch(:code, [])
        given = [("files" if files.any?), ("-e" if codes.any?), ("-- #{@command.first}" if @command)].compact
        raise UsageError, "nothing to measure: name a benchmark file, -e CODE or -- CMD" if given.empty?
        raise UsageError, "#{given.join(" and ")}: measure one or the other" if given.size > 1
        if @command && @options[:ruby]
          raise UsageError, "--ruby: a command names its own: pitwall bench -- #{Shellwords.join(@options[:ruby])} …"
        end

        files.map { |file| subject(File.basename(file), script: script(file)) } +
          codes.map { |code| subject(code, code: code) } +
          [@command && subject(@command.join(" "), command: @command)].compact
      end

      def subject(name, **more)
        Pitwall::Bench::Subject.new(name: name, ruby: words, env: {}, dir: Dir.pwd, requires: [], facts: facts, **more)
      end

      def words = @options[:ruby] || [RbConfig.ruby]

      # The interpreter's description. Without --ruby the interpreter is this process's own, with the same RUBYOPT.
      # @raise [UsageError] the interpreter can't be run, or is no Ruby
      def facts
        return {} if @command

        @facts ||= { "ruby" => @options[:ruby] ? described_ruby : RUBY_DESCRIPTION }
      end

      def described_ruby = Workspace::Interpreter.new(words, dir: Dir.pwd).description

      def check_code(code) = code.strip.empty? ? raise(UsageError, "-e needs code") : code

      def gated(report)
        judge_gate(report.summaries.flat_map { |summary| summary.values.keys }.uniq) do |condition|
          report.summaries.any? { |summary| condition.exceeded?(summary.values[condition.metric]&.estimate) }
        end
      end
    end
  end
end

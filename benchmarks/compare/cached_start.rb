# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "../support/result"
require_relative "../support/scratch_repository"
require_relative "../support/statistics"

module Benchmarks
  module Compare
    # How long a user waits until `pitwall compare --rev A --rev B` measures, where both revisions have been built
    # before: from the start of the command to the start of the first process whose times count. The gem compared is
    # made here: two commits, a Gemfile with a gem that every Ruby has, a benchmark that notes when it is loaded.
    class CachedStart
      ROUNDS = 7
      GOAL_S = 3.0
      # One pair. The times of the last two processes count. Before them each side has been listed and calibrated.
      COMPARE = %w[compare --rev HEAD~1 --rev HEAD --pairs 1 --quiet bench.rb].freeze
      UNDECIDED = 3 # of one pair nothing else is to be expected
      FILES = {
        "small.gemspec" => <<~RUBY,
          Gem::Specification.new do |spec|
            spec.name, spec.version, spec.summary, spec.authors = "small", "1.0.0", "A small gem", ["nobody"]
            spec.files = ["lib/small.rb"]
          end
        RUBY
        "Gemfile" => "source \"https://rubygems.org\"\ngemspec\ngem \"json\"\n",
        "lib/small.rb" => "module Small\n  def self.sum = (1..1000).sum { |number| number * 1 }\nend\n",
        "bench.rb" => <<~RUBY
          File.write(ENV.fetch("STARTS"), "\#{Process.clock_gettime(Process::CLOCK_MONOTONIC)}\\n", mode: "a")
          require "small"
          Benchmark.ips { |x| x.report("sum") { Small.sum } }
        RUBY
      }.freeze
      private_constant :ROUNDS, :GOAL_S, :COMPARE, :UNDECIDED, :FILES

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        missing = %w[git bundle].find { |name| !available?(name) }
        return Result.new(tables: [], goals: [goal([])], notes: ["#{missing} is not installed"], data: {}) if missing

        @context.scratch("cached_start") do |folder|
          @folder = folder
          make_gem
          first = compare
          runs = Array.new(@context.rounds(ROUNDS)) { compare.tap { @context.progress } }
          tables = [table([first], "first time: everything is built"), table(runs, "again")]
          Result.new(tables: tables, goals: [goal(runs)], notes: [],
                     data: { first: first, runs: runs })
        ensure
          FileUtils.rm_rf(folder)
        end
      end

      private

      # Bundler is a package of its own on Debian.
      def available?(name)
        command = name == "bundle" ? [RbConfig.ruby, "-S", name] : [name]
        Open3.capture2e({ "RUBYOPT" => nil }, *command, "--version").last.success?
      rescue Errno::ENOENT
        false
      end

      def make_gem
        @gem = ScratchRepository.new(File.join(@folder, "gem"))
        @gem.write(FILES)
        lock
        @gem.commit("first", {})
        @gem.commit("second", { "lib/small.rb" => FILES["lib/small.rb"].sub("* 1", "* 2") })
      end

      # From the gems there are; without a lock file Bundler would ask the network.
      def lock
        environment = { "BUNDLE_GEMFILE" => File.join(@gem.folder, "Gemfile"), "RUBYOPT" => nil }
        output, status = Open3.capture2e(environment, RbConfig.ruby, "-S", "bundle", "lock", "--local",
                                         chdir: @gem.folder)
        raise Context::Failure, "bundle lock failed: #{output}" unless status.success?
      end

      # Seconds from the start of the command until the benchmark was first loaded, and until the first process whose
      # times count loaded it.
      def compare
        starts = File.join(@folder, "starts")
        FileUtils.rm_f(starts)
        environment = { "STARTS" => starts, "PITWALL_CACHE" => File.join(@folder, "cache") }
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        output, status = Open3.capture2e(environment, RbConfig.ruby, *PITWALL, *COMPARE, chdir: @gem.folder)
        unless status.success? || status.exitstatus == UNDECIDED
          raise Context::Failure, "pitwall compare failed: #{output.lines.first(3).join}"
        end

        times = File.readlines(starts).map { |line| Float(line) - started }
        { loaded: times.first, measured: times[-2], whole: Process.clock_gettime(Process::CLOCK_MONOTONIC) - started }
      end

      def table(runs, title)
        rows = { "until the benchmark is first loaded" => :loaded, "until the first process that counts" => :measured,
                 "whole command, one pair" => :whole }
        Table.new("pitwall compare of two revisions of a small gem, #{title}", ["", "s (median)", "slowest"],
                  rows.map do |text, key|
                    seconds = runs.map { |run| run[key] }
                    [text, *[Statistics.median(seconds), seconds.max].map { |s| format("%.2f", s) }]
                  end)
      end

      def goal(runs)
        text = "compare of two revisions with a cached bundle starts measuring within #{GOAL_S.round} s"
        return Goal.not_measured(text) if @context.quick? || runs.empty?

        slowest = runs.map { |run| run[:measured] }.max
        Goal.new(text, format("%.2f s at most", slowest), slowest <= GOAL_S)
      end
    end
  end
end

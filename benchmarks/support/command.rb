# frozen_string_literal: true

require "optparse"
require_relative "../list"
require_relative "context"
require_relative "planted"
require_relative "results"

module Benchmarks
  # The command line of `benchmarks/run`: which benchmarks, how many rounds, where the figures go.
  class Command
    class UsageError < StandardError; end

    USAGE = <<~TEXT
      Usage: benchmarks/run [NAME...] [options]

      Runs the benchmarks named (default: all) on the Ruby that runs this file, beside the peers, which it
      installs into tmp/ when they are missing. Names (a first part, such as "sampler", means all below it):
      #{LIST.map { |name, about| format("  %-22s %s", name, about) }.join("\n")}

      Options:
    TEXT
    # Profilers, the programs of compare/, and the modes of servers/puma.
    CASES = [*Profilers::CASES.keys, *Planted::CASES.keys, "signal", "outside", "safepoint"].freeze
    private_constant :USAGE, :CASES

    def initialize(out:, err:)
      @out = out
      @err = err
    end

    # Returns the exit status: 0 done, 1 a benchmark failed, 2 usage.
    #: (Array[String]) -> Integer
    def run(argv)
      options = parse(argv) or return 0
      names = names(options[:names])
      settings = options.slice(:quick, :rounds, :cases, :peers, :runs, :minutes, :beside)
      context = Context.new(**settings, out: @out, err: @err)
      names.each { |name| run_one(name, context, write: options[:write]) }
      0
    rescue OptionParser::ParseError, UsageError => e
      @err.puts "benchmarks: #{e.message} (see --help)"
      2
    rescue Context::Failure => e
      @err.puts "benchmarks: #{e.message}"
      1
    end

    private

    def parse(argv)
      options = { quick: false, rounds: nil, cases: nil, peers: true, write: false, runs: nil, minutes: nil,
                  beside: nil }
      parser = OptionParser.new(USAGE) do |opts|
        opts.on("--quick", "one short pass of each: shows that they work, measures nothing") { options[:quick] = true }
        opts.on("--write", "put the figures into benchmarks/RESULTS.md and benchmarks/runs/") { options[:write] = true }
        opts.on("--rounds N", Integer, "rounds instead of a benchmark's own number") { |n| options[:rounds] = n }
        opts.on("--cases A,B", Array, "only these of #{CASES.join(", ")}") { |list| options[:cases] = list }
        opts.on("--runs N", Integer,
                "compare/error_rates: N more runs (0: only add up; default: one of each)") { |n| options[:runs] = n }
        opts.on("--minutes N", Float, "compare/error_rates: no new run after so long") { |n| options[:minutes] = n }
        opts.on("--beside FOLDER", "versions/cost: a checkout of the other version, set up for this Ruby") do |folder|
          options[:beside] = File.expand_path(folder)
        end
        opts.on("--[no-]peers", "without the peers: nothing is installed") { |on| options[:peers] = on }
        opts.on("--list", "print the names") { return @out.puts(LIST.keys) }
        opts.on("--help", "print this") { return @out.puts(opts) }
      end
      options[:names] = parser.parse(argv)
      check(options)
      options
    end

    def check(options)
      raise UsageError, "--quick measures nothing: not with --write" if options[:quick] && options[:write]
      raise UsageError, "--rounds must be 1 or more" if options[:rounds] && options[:rounds] < 1

      raise UsageError, "--runs must be 0 or more" if options[:runs]&.negative?
      raise UsageError, "--minutes must be more than 0" if options[:minutes] && !options[:minutes].positive?

      beside = options[:beside]
      if beside && !File.exist?(File.join(beside, "lib/pitwall.rb"))
        raise UsageError, "--beside #{beside}: no checkout of Pitwall: it has no lib/pitwall.rb"
      end

      unknown = (options[:cases] || []) - CASES
      raise UsageError, "no case #{unknown.first}: there are #{CASES.join(", ")}" if unknown.any?
    end

    def names(wanted)
      return LIST.keys if wanted.empty?

      wanted.flat_map do |want|
        found = LIST.keys.select { |name| name == want || name.start_with?("#{want}/") }
        found.empty? ? raise(UsageError, "no benchmark #{want.inspect}: try --list") : found
      end.uniq
    end

    # A quick pass prints no figures, because a reader would take them for measurements. It prints what was left out.
    def quick(result)
      rows = result.tables.sum { |table| table.rows.size }
      ["#{rows} rows made, nothing measured (--quick)", *result.notes.map { |note| "note: #{note}" }]
    end

    def run_one(name, context, write:)
      @out.puts "== #{name}: #{LIST.fetch(name)}"
      result = context.measure(name)
      @out.puts context.quick? ? quick(result) : result.to_text
      Results.write(result) if write
    end
  end
end

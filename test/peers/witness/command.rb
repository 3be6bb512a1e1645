# frozen_string_literal: true

require "optparse"
require_relative "run"
require_relative "comparison"
require_relative "exceptions"

module Witness
  # What the two scripts share: options, the rows that they print, the exit status.
  #
  # A subject is a set of tests that run in one process: it has `title`, `folder`, `env`, `ways` and `command(tests)`.
  class Command
    # @param file [String] the script, whose first comment is the help
    def initialize(file)
      @file = file
      @options = { limit: 900 }
    end

    #: (Array[String]) { (OptionParser, Hash[Symbol, untyped]) -> void } -> Array[String]  what is left
    def parse(arguments)
      parser = OptionParser.new do |on|
        yield on, @options if block_given?
        on.on("--way WAYS", Array) { |ways| @options[:ways] = ways }
        on.on("--interval TIME") { |time| @options[:interval] = time }
        on.on("--name REGEXP", Regexp) { |name| @options[:name] = name }
        on.on("--limit SECONDS", Integer) { |seconds| @options[:limit] = seconds }
        on.on("--log DIR") { |dir| @options[:log] = File.expand_path(dir) }
        on.on("-h", "--help") { help }
      end
      rest = parser.parse(arguments)
      unknown = (@options.fetch(:ways, []) - WAYS.keys).first
      stop(2, "no way #{unknown}: there are #{WAYS.keys.drop(1).join(", ")}") if unknown
      rest
    rescue OptionParser::ParseError => error
      stop(2, error.message)
    end

    def [](option) = @options[option]

    # Never returns.
    #: (Array[untyped], String) -> void
    def compare_all(subjects, what)
      interval = " every #{@options[:interval]}" if @options[:interval]
      puts "#{RUBY_DESCRIPTION}, #{subjects.size} #{what}, #{subjects.flat_map { |subject| ways(subject) }.uniq.join(", ")}#{interval}"
      $stdout.flush
      conclude(subjects.flat_map { |subject| compare(subject) })
    end

    def stop(status, text)
      warn "#{File.basename(@file)}: #{text}"
      exit status
    end

    private

    def compare(subject)
      log = @options[:log] && File.join(@options[:log], File.basename(subject.title, ".rb"))
      FileUtils.mkdir_p(@options[:log]) if log
      run = lambda do |way, tests, keep = nil|
        settings = { chdir: subject.folder, env: subject.env, keep: keep, **@options.slice(:interval, :limit) }
        Run.new(subject.command(tests), **settings).call(way)
      end
      named = names(subject.title, run) if @options[:name]
      plain = run.call("plain", named, log)
      stop(3, "#{subject.title}: the run without Pitwall has no test: --log DIR keeps what it printed") if plain.size.zero?
      row(subject.title, "plain", plain, [])
      comparison = Comparison.new(plain) { |way, tests| run.call(way, tests || named) }
      ways(subject).flat_map do |way|
        recorded = run.call(way, named, log)
        found = comparison.differences(way, recorded)
        found.each { |difference| difference.reason = exceptions.reason(difference) if difference.ours? }
        row(subject.title, way, recorded, found)
        found
      end
    end

    def ways(subject) = @options[:ways] || subject.ways

    def names(title, run)
      found = run.call("plain", nil).tests.keys.grep(@options[:name])
      found.empty? ? stop(2, "#{title}: no test's name matches #{@options[:name].inspect}") : found
    end

    def exceptions = @exceptions ||= Exceptions.read

    def row(title, way, outcomes, found)
      counts = outcomes.tests.values.tally
      failed = counts.values_at("fail", "error", "unfinished").compact.sum
      puts format("%-32s %-11s %5d tests %4d failed %4d skipped %7.1f s %3d differ, %d named", title, way, outcomes.size,
                  failed, counts.fetch("skip", 0), outcomes.seconds, found.size, found.count(&:reason))
      found.each { |difference| puts "    #{describe(difference)}" }
      $stdout.flush
    end

    def describe(difference)
      about = difference.reason ? "named: #{difference.reason}" : difference.verdict
      "#{difference.test}: #{difference.plain} -> #{difference.recorded} (#{about}) #{difference.message}".rstrip
    end

    def conclude(found)
      bad = found.select { |difference| difference.ours? && !difference.reason }
      others = (found - bad).map { |difference| difference.reason ? "named" : difference.verdict }.tally
      puts ["#{bad.size} differences that are not named", *others.map { |kind, count| "#{count} #{kind}" }].join(", ")
      bad.each { |difference| puts "#{difference.way}: #{describe(difference)}" } # once more: CI's log may show the end only
      exit(bad.empty? ? 0 : 1)
    end

    def help
      about = File.readlines(@file).drop_while { |l| !l.start_with?("# test/") }.take_while { |l| l.start_with?("#") }
      puts about.map { |l| l.sub(/\A# ?/, "") }
      exit
    end
  end
end

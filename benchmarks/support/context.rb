# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "rbconfig"
require_relative "machine"
require_relative "peers"
require_relative "profilers"
require_relative "result"

module Benchmarks
  ROOT = File.expand_path("../..", __dir__)
  # Ruby's arguments that run this checkout's command.
  PITWALL = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
             "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze

  # What a benchmark is given: the settings of this run, the profilers that can run, fresh processes to measure in, and
  # a folder.
  class Context
    class Failure < StandardError; end

    CHILD = File.expand_path("child.rb", __dir__)
    TIMEOUT = 300 # seconds; a child that takes longer hangs
    private_constant :CHILD, :TIMEOUT

    # runs, minutes: of benchmarks that go on where they left off, how much more; nil where nobody said.
    attr_reader :err, :runs, :minutes
    # @return [String, nil] a checkout of another version
    attr_reader :beside

    def initialize(out:, err:, quick: false, rounds: nil, cases: nil, peers: true, runs: nil, minutes: nil, beside: nil)
      @out = out
      @err = err
      @quick = quick
      @rounds = rounds
      @cases = cases
      @use_peers = peers
      @runs = runs
      @minutes = minutes
      @beside = beside
      @absences = {}
      @deaths = Hash.new(0)
    end

    def quick? = @quick

    # How many rounds: what the user asked, one in a quick pass, else the benchmark's own number.
    def rounds(usual) = @rounds || (quick? ? 1 : usual)

    # Loads and runs one benchmark.
    #: (String) -> Result
    def measure(name)
      require File.join(ROOT, "benchmarks", name)
      constant = name.split("/").map { |part| part.split("_").map(&:capitalize).join }.join("::")
      started = Time.now
      @absences = {} # else the next benchmark's notes would tell of this one's
      @deaths = Hash.new(0)
      result = Benchmarks.const_get(constant).new(self).call
      result.with(name: name, cases: @cases, started_at: started, seconds: (Time.now - started).round,
                  command: command(name), machine: Machine.describe)
    end

    # Those of the named profilers that can run here and were asked for; says why for each of the others.
    #: (Array[String]) -> Array[String]
    def available(names)
      names.select do |name|
        next false if @cases && !@cases.include?(name) && name != "none"

        reason = Profilers.missing(name, peers)
        absences[name] = reason if reason
        reason.nil?
      end
    end

    # Those of a benchmark's own cases that were asked for.
    #: (Array[String]) -> Array[String]
    def chosen(names) = @cases ? names & @cases : names

    # { profiler => why it is not in the table }
    def absences = @absences

    # { "profiler on program" => how many of its processes died }
    def deaths = @deaths

    # What the reader of a table has to know of the cases that are not in it.
    def notes
      absences.map { |name, reason| "#{name}: #{reason}" } +
        deaths.map do |key, count|
          "#{key}: #{count} #{count == 1 ? "process" : "processes"} died and #{count == 1 ? "is" : "are"} left out"
        end
    end

    def peers = @peers ||= Peers.new(install: @use_peers, err: @err)

    # Runs one job in a fresh process and returns what it measured, or nil with a word on `err` when the process died:
    # a peer that aborts Ruby must not end the run.
    # @param root [String] the checkout of Pitwall that it loads
    # @param beside [Array<String>] profilers that the job loads as well
    # @param under [Array<String>] a command that runs the process
    #: (profiler: String, ?root: String, ?beside: Array[String], ?under: Array[String], **untyped) -> Hash?
    def child(profiler:, root: ROOT, beside: [], under: [], **job)
      paths = [profiler, *beside].flat_map { |name| Profilers.load_paths(name, peers, root: root) }.uniq
      command = [*under, RbConfig.ruby, *paths.flat_map { |path| ["-I", path] }, CHILD]
      output, errors, status = capture(command, JSON.generate(job.merge(profiler: profiler)))
      return JSON.parse(output.lines.last, symbolize_names: true) if status&.success? && !output.empty?

      raise Failure, "the run without a profiler failed: #{errors}" if profiler == "none"

      died(profiler, job[:program], status, errors)
    end

    # A dot for each process, as a run takes minutes.
    def progress(text = ".") = @out.tty? && @out.print(text)

    # Yields a path for a file that is gone afterwards.
    def scratch(name)
      folder = File.join(ROOT, "tmp", "benchmarks")
      FileUtils.mkdir_p(folder)
      path = File.join(folder, "#{name}-#{Process.pid}.scratch")
      yield path
    ensure
      FileUtils.rm_f(path) if path
    end

    private

    def command(name)
      words = ["benchmarks/run", name, *("--beside FOLDER" if @beside), *("--rounds #{@rounds}" if @rounds),
               *("--cases #{@cases.join(",")}" if @cases), *("--runs #{@runs}" if @runs), "--write"]
      words.join(" ")
    end

    def capture(command, input)
      output = errors = status = nil
      Open3.popen3(*command, chdir: ROOT) do |stdin, stdout, stderr, process|
        stdin.write(input)
        stdin.close
        readers = [stdout, stderr].map { |io| Thread.new { io.read } }
        Process.kill(:KILL, process.pid) unless process.join(TIMEOUT)
        output, errors = readers.map(&:value)
        status = process.value
      end
      [output, errors, status]
    end

    # Said once for each profiler and program; the notes of the result count them.
    def died(profiler, program, status, errors)
      ending = status.signaled? ? "killed by signal #{status.termsig}" : "failed with status #{status.exitstatus}"
      key = "#{profiler} on #{program}"
      deaths[key] += 1
      @err.puts "benchmarks: #{key} #{ending}: #{errors.lines.first(2).map(&:strip).join(" | ")}" if deaths[key] == 1
      nil
    end
  end
end

# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "securerandom"
require "tmpdir"
require_relative "outcomes"
require_relative "../../../script/checkout"

module Witness
  # Ways of recording: the words before the command.
  WAYS = {
    "plain" => [],
    "signal" => %w[profile --mode signal],
    "outside" => %w[profile --mode outside],
    "safepoint" => %w[profile --mode safepoint],
    "trace" => %w[trace],
    "allocations" => %w[allocations],
    "syscalls" => %w[syscalls],
    "boot-cold" => [],
    "boot-warm" => []
  }.freeze
  # Ways without a recording: every Ruby loads the accelerator (doc/fastboot.md). The number is how often the tests run
  # on one pack. The last run counts, so the pack of `boot-warm` has what the first run compiled.
  BOOTS = { "boot-cold" => 1, "boot-warm" => 2 }.freeze
  RECORDINGS = (WAYS.keys - ["plain", *BOOTS.keys]).freeze

  # Runs tests in one of the ways. It leaves no process behind.
  class Run
    MARK = "WITNESS_RUN"
    # A developer's or CI's settings would reach the tests.
    CLEAN = %w[RUBYOPT RUBYLIB BUNDLE_GEMFILE BUNDLER_SETUP PITWALL_PARTS PITWALL_OPTIONS PITWALL_NO_SKIPS PITWALL_CI
               PITWALL_FASTBOOT PITWALL_BOOT_CACHE PITWALL_BOOT_CACHE_READONLY]
            .to_h { |name| [name, nil] }.merge("TERM" => "dumb").freeze

    # @param interval [String, nil] for the ways that sample: "100us"
    # @param limit [Numeric] seconds
    #: (Array[String], chdir: String, **untyped) -> void
    def initialize(command, chdir:, interval: nil, limit: 900, keep: nil, env: {})
      @command = command
      @chdir = chdir
      @interval = interval
      @limit = limit
      @keep = keep
      @env = env
    end

    # @raise [RuntimeError] the way recorded nothing, or left no pack
    #: (String) -> Outcomes
    def call(way)
      Dir.mktmpdir("witness-") do |dir|
        BOOTS.fetch(way, 1).times.map { once(way, dir) }.last
      end
    end

    private

    def once(way, dir)
      FileUtils.rm_rf([tmp = File.join(dir, "tmp"), *%w[report output].map { |name| File.join(dir, name) }])
      Dir.mkdir(tmp)
      recording = File.join(dir, "x.pit")
      ending, seconds = execute(way, recorder(way, recording) + @command, dir, tmp)
      output = read(dir, "output")
      FileUtils.cp(File.join(dir, "output"), "#{@keep}.#{way}") if @keep
      FileUtils.cp(recording, "#{@keep}.#{way}.pit") if @keep && File.exist?(recording)
      raise "#{way}: #{NOTHING_LEFT}:\n#{output.lines.last(20).join}" unless left?(way, dir) || ending == "time limit"

      Outcomes.new(report: read(dir, "report"), ending: ending, output: output, seconds: seconds)
    end

    NOTHING_LEFT = "there is no recording and no pack"
    private_constant :NOTHING_LEFT

    def left?(way, dir)
      return true if way == "plain"

      BOOTS.key?(way) ? Dir[File.join(dir, "cache/*.pack")].any? : File.size?(File.join(dir, "x.pit"))
    end

    def accelerator(way, dir)
      return {} unless BOOTS.key?(way)

      # By its path, so that it is found with --disable-gems and without RUBYLIB.
      { "RUBYOPT" => "-r#{File.join(Checkout::ROOT, "lib/pitwall/fastboot")}",
        "PITWALL_BOOT_CACHE" => File.join(dir, "cache") }
    end

    def recorder(way, recording)
      words = WAYS.fetch(way)
      return [] if words.empty?

      quiet = words.first == "syscalls" ? ["--out", File::NULL] : ["--quiet"]
      interval = @interval && words.first == "profile" ? ["--interval", @interval] : []
      command = File.join(Checkout::ROOT, "script/pitwall")
      [RbConfig.ruby, command, *words, *interval, *quiet, "--record", recording, "--"]
    end

    def read(dir, name)
      path = File.join(dir, name)
      File.exist?(path) ? File.binread(path).force_encoding("UTF-8").scrub("?") : ""
    end

    # @return [Array(String, Float)] how it ended, and after how many seconds
    def execute(way, command, dir, tmp)
      mark = SecureRandom.hex(8)
      env = CLEAN.merge(MARK => mark, "WITNESS_REPORT" => File.join(dir, "report"), "TMPDIR" => tmp, **accelerator(way, dir), **@env)
      streams = { in: File::NULL, out: [File.join(dir, "output"), "a"], err: %i[child out] }
      began = now
      pid = Process.spawn(env, *command, chdir: @chdir, pgroup: true, **streams)
      ending = wait(pid, began + @limit)
      [ending, now - began]
    ensure
      kill_all(mark, pid)
    end

    def wait(pid, deadline)
      until Process.wait(pid, Process::WNOHANG)
        return "time limit" if now > deadline

        sleep 0.02
      end
      # The runner's status says that a test failed, which the tests say themselves. Of a command that a signal ended,
      # pitwall's own status is 128 and the signal.
      signal = $?.termsig || ($?.exitstatus.between?(129, 192) ? $?.exitstatus - 128 : nil)
      signal ? "SIG#{Signal.signame(signal)}" : "exit"
    end

    # Tests make process groups and daemons. What has our mark in its environment is ours.
    def kill_all(mark, pid)
      20.times do
        left = Dir["/proc/[0-9]*/environ"].filter_map do |path|
          path[/\d+/].to_i if File.binread(path).split("\0").include?("#{MARK}=#{mark}")
        rescue SystemCallError
          nil # it has ended, or is another user's
        end
        break if left.empty?

        left.each { |found| Process.kill(:KILL, found) rescue nil }
        Process.wait(pid, Process::WNOHANG) rescue nil
        sleep 0.05
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

# frozen_string_literal: true

require "fileutils"
require_relative "../support/clocks"
require_relative "../support/result"
require_relative "../support/statistics"
require_relative "../support/syscall_logs"

module Benchmarks
  module Syscalls
    # How long `pitwall syscalls` takes for a log of 10,000,000 lines, with a user's patterns, and how much memory. A
    # shorter log shows how many times faster it is than the study's seven passes in a pipe of seven Ruby processes
    # (programs/seven_passes/pass.rb).
    class Log
      LINES = 10_000_000
      COMPARED = 400_000
      ROUNDS = 3
      GOAL_S = 60
      GOAL_MB = 300
      GOAL_TIMES = 5
      PASSES = %w[load yaml rrpi scan sgem asds stls].freeze
      PATTERNS = <<~YAML
        syscalls:
          patterns:
            - name: "%GIT"
              match: sequence
              calls: lstat+ close
              path: '/\\.git/objects/'
              explanation: a repository's objects asked for
              advice: don't glob a repository
            - name: "%MODEL"
              match: run
              calls: stat lstat
              same: folder
              least: 3
              explanation: a folder's files asked for in a row
              advice: list the folder
              before: "%STLS"
      YAML
      # As script/pitwall does, without looking whether anything has to be built first.
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      PASS = File.expand_path("../programs/seven_passes/pass.rb", __dir__)
      private_constant :LINES, :COMPARED, :ROUNDS, :GOAL_S, :GOAL_MB, :GOAL_TIMES, :PASSES, :PATTERNS, :COMMAND, :PASS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        folder do |dir|
          long, short = [LINES, COMPARED].map { |lines| log(dir, @context.quick? ? lines / 1000 : lines) }
          rounds = Array.new(@context.rounds(ROUNDS)) { { ours: report(dir, short), passes: pipeline(dir, short) } }
          whole = report(dir, long)
          refuse_difference(dir, short)
          row = [seconds(whole[:wall_ns]), seconds(whole[:cpu_ns]), whole[:peak_kb] / 1000]
          whole_table = Table.new("10,000,000 lines", %w[wall\ s CPU\ s peak\ MB], [row])
          Result.new(tables: [table(rounds), whole_table],
                     goals: goals(whole, rounds), notes: @context.notes, data: { rounds: rounds, whole: whole })
        end
      end

      private

      def folder
        dir = File.join(ROOT, "tmp", "benchmarks", "syscalls-#{Process.pid}")
        FileUtils.mkdir_p(dir)
        File.write(File.join(dir, ".pitwall.yml"), PATTERNS)
        yield dir
      ensure
        FileUtils.rm_rf(dir)
      end

      def log(dir, lines) = File.join(dir, "#{lines}.log").tap { |path| SyscallLogs.write(path, lines) }

      # What the command and the processes it starts spent; the most that was resident at once of all of them.
      def report(dir, path)
        spent(dir, [RbConfig.ruby, *COMMAND, "syscalls", path])
      end

      def pipeline(dir, path)
        spent(dir, ["sh", "-c", pipe(path)])
      end

      def pipe(path) = "< '#{path}' #{PASSES.map { |name| "'#{RbConfig.ruby}' '#{PASS}' #{name}" }.join(" | ")}"

      def spent(dir, command)
        before = Process.times
        peak = 0
        wall = Clocks.spent do
          pid = spawn(*command, chdir: dir, out: File::NULL, pgroup: true)
          until Process.wait(pid, Process::WNOHANG)
            peak = [peak, resident(pid)].max
            sleep 0.02
          end
        end[:wall_ns]
        raise Context::Failure, "#{command.first(3).join(" ")} failed: #{$?}" unless $?.success?

        after = Process.times
        cpu = after.cutime + after.cstime - before.cutime - before.cstime
        { wall_ns: wall, cpu_ns: (cpu * 1e9).round, peak_kb: peak }
      end

      # Of a process group, in kB.
      def resident(group)
        Dir["/proc/[0-9]*/stat"].sum do |stat|
          fields = File.read(stat).sub(/\A.*\) /m, "").split
          fields[2].to_i == group ? fields[21].to_i * 4 : 0
        rescue SystemCallError
          0
        end
      end

      # The comparison is of the same work: both give the same collapsed log, but for the user's patterns.
      def refuse_difference(dir, path)
        File.unlink(File.join(dir, ".pitwall.yml"))
        ours = IO.popen([RbConfig.ruby, *COMMAND, "syscalls", path, "--collapsed"], "rb", chdir: dir, &:read)
        theirs = IO.popen(["sh", "-c", pipe(path)], "rb", &:read)
        raise Context::Failure, "the seven passes and pitwall collapse the log differently" unless ours == theirs
      end

      def table(rounds)
        rows = { ours: "pitwall syscalls", passes: "seven passes in a pipe" }.map do |name, title|
          times = %i[wall_ns cpu_ns].map { |clock| seconds(median(rounds, name, clock)) }
          [title, *times, median(rounds, name, :peak_kb).round / 1000]
        end
        Table.new("#{COMPARED} lines (#{rounds.size} rounds, medians)", ["case", "wall s", "CPU s", "peak MB"], rows)
      end

      def median(rounds, name, field) = Statistics.median(rounds.map { |round| round[name][field].to_f })

      def seconds(ns) = format("%.2f", ns / 1e9)

      def goals(whole, rounds)
        texts = ["10,000,000 lines, a user's patterns among them, take at most #{GOAL_S} s",
                 "and at most #{GOAL_MB} MB",
                 "at least #{GOAL_TIMES} times faster than seven passes in a pipe (CPU time)"]
        return texts.map { |text| Goal.not_measured(text) } if @context.quick?

        times = median(rounds, :passes, :cpu_ns) / median(rounds, :ours, :cpu_ns)
        wall = median(rounds, :passes, :wall_ns) / median(rounds, :ours, :wall_ns)
        [Goal.new(texts[0], "#{seconds(whole[:wall_ns])} s", whole[:wall_ns] <= GOAL_S * 1e9),
         Goal.new(texts[1], "#{whole[:peak_kb] / 1000} MB", whole[:peak_kb] <= GOAL_MB * 1000),
         Goal.new(texts[2], format("%.1f (wall %.1f)", times, wall), times >= GOAL_TIMES)]
      end
    end
  end
end

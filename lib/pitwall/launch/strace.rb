# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/native"
require "pitwall/launch"

module Pitwall
  class Launch
    # The same calls seen from outside, where they can't be from inside: fifty times slower, without Ruby lines, but of every
    # program that the command starts.
    class Strace
      # Where it is installed; nil where it isn't.
      #: () -> String?
      def self.path
        ENV["PATH"].to_s.split(File::PATH_SEPARATOR).map { |folder| File.join(folder, "strace") }.find { |file| File.file?(file) && File.executable?(file) }
      end

      # The command under a strace that the command's first Ruby ends when Pitwall is loaded: its own start is in the log. It stays a direct
      # child of whoever starts it.
      # Raises NotFound, NotExecutable.
      #: () -> Array[String]
      def words_for_start
        check_command
        [self.class.path, "-I", "2", "-D", *options]
      end

      # @return [String] absolute path of what it wrote
      attr_reader :log

      # @param log [String] where strace is to write
      #: (Array[String], log: String, ?io: bool) -> void
      def initialize(command, log:, io: false)
        @command = command
        @log = log
        @io = io
      end

      # Runs the command to its end.
      # Raises NotFound, NotExecutable; CannotMeasure where strace may not trace.
      #: () -> Finished
      def call
        check_command
        finished = Launch.new([self.class.path, *options]).call
        raise CannotMeasure, "strace could not trace: a container without SYS_PTRACE forbids it (docker --cap-add SYS_PTRACE)" if File.zero?(@log) && !finished.status.success?

        finished
      end

      private

      # -s 0: paths are whole all the same, and what is read, written or given as an argument stays out of the log. "?": should strace not know it.
      def options
        Pitwall.load_native!
        names = Native.syscall_names(@io).map { |name| "?#{name}" }.join(",")
        ["-f", "-qq", "-y", "-T", "-ttt", "-s", "0", "-e", "signal=none", "-e", "trace=#{names}", "-o", @log, "--", *@command]
      end

      # Strace's own words for it, and its status, are others than a shell's.
      def check_command
        program = @command.first
        found = program.include?("/") ? [program] : ENV["PATH"].to_s.split(File::PATH_SEPARATOR).map { |folder| File.join(folder, program) }
        files = found.select { |file| File.file?(file) }
        raise NotFound, "#{program}: command not found" if files.empty? && found.none? { |file| File.exist?(file) }
        raise NotExecutable, "#{program}: not executable" if files.none? { |file| File.executable?(file) }
      end
    end
  end
end

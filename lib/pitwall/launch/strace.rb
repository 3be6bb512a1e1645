# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/native"
require "pitwall/launch"

module Pitwall
  class Launch
    # Records system calls by strace, where the extension cannot. It is fifty times slower and knows no Ruby lines, but
    # it sees every program that the command starts.
    class Strace
      # @return [String, nil] path of the installed strace
      #: () -> String?
      def self.path
        files = ENV["PATH"].to_s.split(File::PATH_SEPARATOR).map { |folder| File.join(folder, "strace") }
        files.find { |file| File.file?(file) && File.executable?(file) }
      end

      # The words that run the command under strace until its first Ruby has loaded Pitwall, which ends strace. The log
      # has the calls of Ruby's own start. The command stays a direct child of the process that starts it (`-D`).
      # @raise [NotFound, NotExecutable]
      #: () -> Array[String]
      def words_for_start
        check_command
        [self.class.path, "-I", "2", "-D", *options]
      end

      # @return [String] absolute path of strace's log
      attr_reader :log

      # @param log [String] path for strace's log
      # @param io [Boolean] whether to record reads, writes and network calls as well
      #: (Array[String], log: String, ?io: bool) -> void
      def initialize(command, log:, io: false)
        @command = command
        @log = log
        @io = io
      end

      # Runs the command under strace to its end.
      # @raise [NotFound, NotExecutable]
      # @raise [CannotMeasure] strace is not allowed to trace
      #: () -> Finished
      def call
        check_command
        finished = Launch.new([self.class.path, *options]).call
        if File.zero?(@log) && !finished.status.success?
          raise CannotMeasure, "strace could not trace: a container without SYS_PTRACE forbids it " \
                               "(docker --cap-add SYS_PTRACE)"
        end

        finished
      end

      private

      # -s 0 keeps contents that are read or written, and arguments of programs, out of the log. Paths are still whole.
      # With "?" before a name, an strace that does not know the call ignores it.
      def options
        Pitwall.load_native!
        names = Native.syscall_names(@io).map { |name| "?#{name}" }.join(",")
        ["-f", "-qq", "-y", "-T", "-ttt", "-s", "0", "-e", "signal=none", "-e", "trace=#{names}", "-o", @log, "--",
         *@command]
      end

      # Gives the message and the exit status of a shell; strace has others.
      def check_command
        program = @command.first
        folders = ENV["PATH"].to_s.split(File::PATH_SEPARATOR)
        paths = program.include?("/") ? [program] : folders.map { |folder| File.join(folder, program) }
        files = paths.select { |path| File.file?(path) }
        raise NotFound, "#{program}: command not found" if files.empty? && paths.none? { |path| File.exist?(path) }
        raise NotExecutable, "#{program}: not executable" if files.none? { |file| File.executable?(file) }
      end
    end
  end
end

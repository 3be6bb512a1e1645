# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/failures"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # Runs the steps of building one side, and writes their output to a log file.
    # @api private
    class BuildLog
      MAX_LINE = 200 # characters of a log line that an error message quotes
      private_constant :MAX_LINE

      # @return [String] path of the log file
      attr_reader :path

      # @param side [String] name of the side, for messages: "main (3f2a1bc)"
      # @param path [String] path of the log file
      # @param on_step [Proc] called with a text at each step
      #: (side: String, path: String, on_step: ^(String) -> void) -> void
      def initialize(side:, path:, on_step:)
        @side = side
        @path = path
        @on_step = on_step
        @begun = false
      end

      # Reports a step. All git steps are reported as "preparing a clone", because users don't know the git commands.
      #: (String) -> void
      def step(text) = @on_step.call("#{@side}: #{text.start_with?("git ") ? "preparing a clone" : text}")

      # Runs a program to its end and logs its output.
      # Raises BuildFailed when the program can't be started.
      #: (String, Array[String], dir: String, ?env: Hash[String, String?]) -> Process::Status
      def try(step, command, dir:, env: {})
        step(step)
        begin_file
        File.open(@path, "a") do |log|
          log.puts("== #{step}: #{command.map { |word| word.inspect[1..-2].slice(0, MAX_LINE) }.join(" ")}")
          log.flush
          Subprocess.run(command, dir: dir, env: env, out: log, err: log)
        end
      rescue Errno::ENOENT, Errno::EACCES => error
        raise unless error.message.include?(command.first)

        raise BuildFailed, "#{@side}: #{step}: cannot run #{command.first}: #{SystemCallError.new(error.errno).message}"
      end

      # Runs a program. Raises BuildFailed unless its exit status is 0.
      #: (String, Array[String], dir: String, ?env: Hash[String, String?]) -> void
      def run(step, command, dir:, env: {})
        fail!(step) unless try(step, command, dir: dir, env: env).success?
      end

      # Raises BuildFailed with the text, or with the log's last line.
      #: (String, ?String?) -> bot
      def fail!(step, text = nil)
        raise BuildFailed, "#{@side}: #{step} failed: #{text || last_line}#{" (log: #{@path})" if @begun}"
      end

      # Adds a line to the log.
      #: (String) -> void
      def note(text)
        begin_file
        File.write(@path, "#{text}\n", mode: "a")
      end

      private

      # Creates the log file with the first step. The log of an earlier build is overwritten.
      def begin_file
        return if @begun

        FileUtils.mkdir_p(File.dirname(@path))
        File.write(@path, "")
        @begun = true
      end

      def last_line
        text = File.binread(@path).force_encoding(Encoding::UTF_8).scrub
        lines = text.lines.map { |each| each.gsub(/\e\[[\d;]*m/, "").strip }
        lines.reject! { |each| each.empty? || each.start_with?("== ") }
        # Bundler prints an excerpt of the Gemfile after its message, so the message is not the last line.
        line = lines.grep(/\A\[!\] /).last || lines.last
        line ? line.delete_prefix("[!] ")[0, MAX_LINE] : "it said nothing"
      end
    end
  end
end

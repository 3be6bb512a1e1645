# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/failures"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # The steps of building one side, and the file that what they print goes to.
    # @api private
    class BuildLog
      LONGEST = 200 # characters of the last line that fit an error of one line
      private_constant :LONGEST

      # @return [String]
      attr_reader :path

      # @param side [String] what is built, for messages: "main (3f2a1bc)"
      # @param on_step [Proc] is told of each step in words
      #: (side: String, path: String, on_step: ^(String) -> void) -> void
      def initialize(side:, path:, on_step:)
        @side = side
        @path = path
        @on_step = on_step
        @begun = false
      end

      # Says what is being done. What git is told to do to make a clone says nothing to the user.
      #: (String) -> void
      def step(text) = @on_step.call("#{@side}: #{text.start_with?("git ") ? "preparing a clone" : text}")

      # Runs a program to its end.
      # @return [Process::Status]
      #: (String, Array[String], dir: String, ?env: Hash[String, String?]) -> Process::Status
      def try(step, command, dir:, env: {})
        step(step)
        begin_file
        File.open(@path, "a") do |log|
          log.puts("== #{step}: #{command.map { |word| word.inspect[1..-2].slice(0, LONGEST) }.join(" ")}")
          log.flush
          Subprocess.run(command, dir: dir, env: env, out: log, err: log)
        end
      rescue Errno::ENOENT, Errno::EACCES => error
        raise unless error.message.include?(command.first)

        raise BuildFailed, "#{@side}: #{step}: cannot run #{command.first}: #{SystemCallError.new(error.errno).message}"
      end

      # Runs a program that must succeed.
      # Raises BuildFailed.
      #: (String, Array[String], dir: String, ?env: Hash[String, String?]) -> void
      def run(step, command, dir:, env: {})
        fail!(step) unless try(step, command, dir: dir, env: env).success?
      end

      # Raises BuildFailed with the log's last line, or the text.
      #: (String, ?String?) -> bot
      def fail!(step, text = nil)
        raise BuildFailed, "#{@side}: #{step} failed: #{text || last_line}#{" (log: #{@path})" if @begun}"
      end

      # Adds a line.
      #: (String) -> void
      def note(text)
        begin_file
        File.write(@path, "#{text}\n", mode: "a")
      end

      private

      # A build's log replaces that of the one before it.
      def begin_file
        return if @begun

        FileUtils.mkdir_p(File.dirname(@path))
        File.write(@path, "")
        @begun = true
      end

      def last_line
        text = File.binread(@path).force_encoding(Encoding::UTF_8).scrub
        lines = text.lines.map { |each| each.gsub(/\e\[[\d;]*m/, "").strip }.reject { |each| each.empty? || each.start_with?("== ") }
        # Bundler puts an excerpt of the Gemfile after what it has to say.
        line = lines.grep(/\A\[!\] /).last || lines.last
        line ? line.delete_prefix("[!] ")[0, LONGEST] : "it said nothing"
      end
    end
  end
end

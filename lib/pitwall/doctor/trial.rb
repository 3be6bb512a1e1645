# frozen_string_literal: true

require "rbconfig"
require "tmpdir"
require "pitwall/errors"
require "pitwall/launch"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"

module Pitwall
  class Doctor
    # Profiles a program of 0.1 s with a Ruby. So the profiler is tested with that Ruby.
    class Trial
      PROGRAM = <<~'RUBY'
        finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.1
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
        jits = %w[YJIT ZJIT].map do |name|
          next "not built in" unless defined?(RubyVM) && RubyVM.const_defined?(name)

          RubyVM.const_get(name).enabled? ? "on" : "off"
        end
        outside = Pitwall::Native.outside_refusal || "works" rescue "unknown"
        walk = Pitwall::Native.walk_refusal || "works" rescue "unknown"
        collector = Pitwall::Native.other_gc || "default" rescue "unknown"
        native = Pitwall::Native.native_refusal || "works" rescue "unknown"
        puts native, outside, walk, RUBY_DESCRIPTION, RUBY_ENGINE, jits, collector
      RUBY
      private_constant :PROGRAM

      # @return [String] the Ruby's path
      attr_reader :ruby
      # @return [String] the output of `ruby -v`; "" when that Ruby did not run
      attr_reader :description
      # @return [String] "ruby", "jruby"…; "" when that Ruby did not run
      attr_reader :engine
      # @return [String] "on", "off", "not built in"; "" when that Ruby did not run
      attr_reader :yjit, :zjit
      # @return [String] the garbage collector: "default", "mmtk"; "unknown" without Pitwall's extension
      attr_reader :collector
      # @return [String] "works", or why stacks can't be read from outside; "unknown" without Pitwall's extension
      attr_reader :outside
      # @return [String] "works", or why Pitwall's own stack walk doesn't work; "unknown" without Pitwall's extension
      attr_reader :walk
      # @return [String] "works", or why native frames can't be read; "unknown" without Pitwall's extension
      attr_reader :native
      # @return [String, nil] why nothing was recorded
      attr_reader :problem
      # @return [Pitwall::Record::Segment, nil] the recording
      attr_reader :segment

      # Trials of the Ruby that runs Pitwall, and of the `ruby` in PATH when it is another one.
      #: () -> Array[Trial]
      def self.rubies
        in_path = ENV["PATH"].to_s.split(File::PATH_SEPARATOR).map { |dir| File.join(dir, "ruby") }
                             .find { |file| File.file?(file) && File.executable?(file) }
        [RbConfig.ruby, in_path].compact.uniq { |path| File.realpath(path) }.map { |path| new(path) }
      end

      # Runs the trial. A failure is stored in {problem}, not raised.
      # @param ruby [String] path of the Ruby
      #: (String) -> void
      def initialize(ruby)
        @ruby = ruby
        @description = @engine = @yjit = @zjit = ""
        @outside = @walk = @collector = @native = "unknown"
        Dir.mktmpdir("pitwall-doctor-") { |dir| try(dir) }
      rescue Pitwall::Error, SystemCallError => error
        @problem = error.message
      end

      private

      def try(dir)
        parts = File.join(dir, "parts")
        Dir.mkdir(parts, 0o700)
        output = File.join(dir, "output")
        finished = run(parts, output)
        if finished.status.success?
          @native, @outside, @walk, @description, @engine, @yjit, @zjit, @collector =
            File.readlines(output, chomp: true).last(8)
        end

        @problem = "ended with #{finished.status.to_s.sub(/\Apid \d+ /, "")}" unless finished.status.success?
        read(Pitwall::Launch::Parts.new(parts), File.join(dir, "trial.pit"), finished.pid)
      end

      def run(parts, output)
        options = { interval_ns: 1_000_000, mode: "auto", signal: "URG", flush_ns: 1_000_000_000, keep_argv: 0 }
        environment = Pitwall::Launch::TargetEnvironment.new(parts: parts, options: options)
        # Without the bundle that this process may run in: the trial tests the Ruby, not the bundle.
        clean = { "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil }
        Pitwall::Launch.new([ruby, "-e", PROGRAM],
                            env: environment.to_h({}).merge(clean),
                            in: File::NULL, out: output, err: File::NULL).call
      end

      def read(parts, recording, pid)
        messages = parts.messages
        merged = parts.merge_into(recording, first: pid)
        @problem ||= messages.first
        return @problem ||= "nothing was recorded" unless merged.any?

        require "pitwall/record"
        @segment = Record.read(recording).segments.first
      end
    end
  end
end

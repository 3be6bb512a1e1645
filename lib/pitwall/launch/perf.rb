# frozen_string_literal: true

require "tempfile"
require "pitwall/errors"
require "pitwall/launch"

module Pitwall
  class Launch
    # Linux's `perf`: whether it records here, the text of its recordings, and a perf that records a command.
    class Perf
      # The event to sample by. Every Linux has it, also in virtual machines.
      EVENT = "task-clock"
      # The first bytes of perf's own files.
      MAGIC = "PERFILE2"
      # Fields beside the usual ones, decimals of times, and symbols as the linker knows them. Inlined functions are
      # left out: `perf report` counts for the function around them too, and looking for them takes minutes.
      SCRIPT = %w[script -F +pid --ns --no-inline --no-demangle].freeze
      private_constant :SCRIPT

      class << self
        # @return [String, nil] path of the installed perf
        #: () -> String?
        def path
          files = ENV["PATH"].to_s.split(File::PATH_SEPARATOR).map { |folder| File.join(folder, "perf") }
          files.find { |file| File.file?(file) && File.executable?(file) }
        end

        # Whether a file is one of perf's own.
        #: (String) -> bool
        def file?(path) = File.file?(path) && File.binread(path, MAGIC.bytesize) == MAGIC

        # Reads the samples of one of perf's own files as text.
        # @yield [Text]
        #: [T] (String) { (Text) -> T } -> T
        def script(file)
          Tempfile.create("pitwall-perf") do |errors|
            IO.popen([path, *SCRIPT, "-i", file, in: File::NULL, err: errors.path]) do |io|
              yield Text.new(io, file, errors.path)
            end
          end
        end

        # The first line of perf's messages that says something.
        #: (String) -> String
        def reason(file)
          lines = File.read(file).scrub("?").lines.map { |line| line.strip.delete_suffix(".") }
          lines.grep_v(/\A(?:\[ perf record:|For your workloads|Error:|\z)/).first || "no reason given"
        end
      end

      # What perf prints. Its end is an error where perf failed.
      # @api private
      class Text
        #: (IO, String, String) -> void
        def initialize(io, file, errors)
          @io = io
          @file = file
          @errors = errors
        end

        # @raise [BadRecording] perf can't read the file
        #: (Integer) -> String?
        def read(size)
          @io.read(size) || begin
            @io.close
            raise BadRecording, "#{@file}: perf can't read it: #{Perf.reason(@errors)}" unless $?.success?
          end
        end
      end
      private_constant :Text
    end
  end
end

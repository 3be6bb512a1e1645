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
      # What perf says where the system does not allow it to record.
      FORBIDDEN = /perf_event_paranoid|permission|not permitted|Access to performance monitoring|EACCES|EPERM/i.freeze
      private_constant :FORBIDDEN
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
        # @param name [String] of the file in errors
        # @param feed [Proc, nil] writes the file to perf's standard input, where the file is "-"
        # @yield [Text]
        #: [T] (String, ?name: String, ?feed: Proc?) { (Text) -> T } -> T
        def script(file, name: file, feed: nil)
          Tempfile.create("pitwall-perf") do |errors|
            input, feeding = feed ? IO.pipe(binmode: true) : [File.open(File::NULL)]
            IO.popen([path, *SCRIPT, "-i", file, in: input, err: errors.path]) do |io|
              input.close
              feeder = feeding && Thread.new { feed_to(feeding, feed) }
              yield Text.new(io, name, errors.path)
            ensure
              feeder&.kill&.join
            end
          end
        end

        # Whether perf's messages say that the system does not allow it to record.
        #: (String) -> bool
        def forbidden?(file) = File.read(file).scrub("?").match?(FORBIDDEN)

        # perf may have ended early: it says why itself.
        def feed_to(pipe, feed)
          feed.call(pipe)
        rescue Errno::EPIPE, IOError
          nil
        ensure
          pipe.close
        end
        private :feed_to

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

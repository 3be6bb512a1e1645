# frozen_string_literal: true

require "tmpdir"
require "pitwall/doctor/check"

module Pitwall
  class Doctor
    # Checks of the places that recordings and reports are written to.
    # @api private
    module Output
      module_function

      # All checks of this module.
      # @param streams [Hash] name → stream
      #: (Hash[String, IO]) -> Array[Check]
      def checks(streams) = [recordings, room, *streams.map { |name, io| terminal(name, io) }].compact

      # The default folder of recordings: .pitwall/ of the working directory.
      #: () -> Check
      def recordings
        folder = File.join(Dir.pwd, ".pitwall")
        folder = File.dirname(folder) unless File.exist?(folder)
        return Check.of("recordings", :ok, "in .pitwall/ of the working " \
                                           "directory") if File.directory?(folder) && File.writable?(folder)

        Check.of("recordings", :note, "#{folder} can't be written",
                 mend: "--record FILE.pit",
                 meaning: "they go to a folder below #{Dir.tmpdir}")
      rescue SystemCallError => error
        Check.of("recordings", :note, "the working directory is gone (#{error.class.name.split("::").last})",
                 meaning: "they go to a temporary folder", mend: "cd to one that is there")
      end

      # Free space of the working directory's disk, from the program df: Ruby has no method for it.
      #: () -> Check?
      def room
        kilobytes = IO.popen(["df", "-Pk", "."], err: File::NULL, &:read).lines.last.to_s.split[3].to_i
        return if kilobytes.zero? && !$?.success?
        return Check.of("room", :ok, "#{kilobytes / 1024} MB") if kilobytes > 100 * 1024

        Check.of("room", :limited, "#{kilobytes / 1024} MB",
                 affects: ["profile"],
                 meaning: "a recording takes some MB a minute at 1 ms",
                 mend: "make room, or --record on another disk")
      rescue SystemCallError
        nil
      end

      # Whether a stream is a terminal, and its width and colours.
      #: (String, IO) -> Check
      def terminal(name, io)
        return Check.of(name, :ok, "no terminal: 100 columns, no colour") unless io.tty?

        require "io/console"
        plain = !ENV["NO_COLOR"].to_s.empty? || ENV["TERM"] == "dumb"
        Check.of(name, :ok, "terminal, #{io.winsize[1]} columns, #{plain ? "no colour asked for" : "colour"}")
      rescue SystemCallError
        Check.of(name, :ok, "terminal of unknown width: 80 columns")
      end
    end
    private_constant :Output
  end
end

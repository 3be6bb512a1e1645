# frozen_string_literal: true

require "shellwords"
require "pitwall/duration"
require "pitwall/show/terminal/units"

module Pitwall
  module CLI
    # What `pitwall profile` says around its report: what went wrong, where the recording is, what to try next.
    class ProfileSummary
      # @param export [Array(String, String)] a format to look at it elsewhere, and a file's name
      # @param delay, duration [Integer, nil] ns: which part of the command's time was to be recorded
      #: (destination: Destination, finished: Finished, merged: Merged, messages: Array[String], **untyped) -> void
      def initialize(destination:, finished:, merged:, messages:, export: %w[speedscope profile.json], delay: nil,
                     duration: nil)
        @delay = delay
        @duration = duration
        @export = export
        @destination = destination
        @finished = finished
        @merged = merged
        @messages = messages
      end

      # Lines for before the report, empty when all went well.
      #: () -> Array[String]
      def problems
        lines = @destination.notes + @messages
        lines += @merged.living.map do |pid|
          "process #{pid} still records to #{parts}/; when it has ended: pitwall report #{shell(parts)}/*.pit"
        end
        lines << missing if @merged.problem
        lines << nothing_recorded if !@merged.any? && @merged.living.empty? && !@merged.problem
        lines.map { |line| "pitwall: #{line}" }
      end

      # Lines for after the report, which itself says what to look at next.
      # @param difference [Control::Difference, nil] what the control run gave
      # @param elsewhere [Boolean] whether there are samples for other programs to show
      #: (Difference?, ?elsewhere: bool) -> Array[String]
      def closing(difference, elsewhere: true)
        lines = [""]
        lines << "With and without Pitwall: one run each is an indication, not a measurement." if difference
        count = " (#{@merged.count} parts)" if @merged.count > 1
        lines << "Recorded in #{near(@destination.recording)}#{count}#{times}"
        # A command stands on a line of its own, to be copied whole.
        file = shell(near(@destination.recording))
        lines << "To look at it in the browser#{", or elsewhere" if elsewhere}:" << "  pitwall view #{file}"
        lines << "  pitwall export #{file} --to #{@export[0]} --out #{@export[1]}" if elsewhere
        lines
      end

      private

      def missing
        if @merged.older
          return "#{near(@destination.recording)} is left as it was (#{@merged.problem}): " \
                 "what was recorded, #{@merged.missing_bytes} bytes, is in #{parts}/; " \
                 "make room, or look at it there: pitwall report #{shell(parts)}"
        end

        "#{@merged.missing_bytes} bytes are missing from #{near(@destination.recording)} (#{@merged.problem}): " \
          "they are in #{parts}/, make room and join them with cat"
      end

      # It can't be seen from outside which of these it was.
      def nothing_recorded
        return "nothing was recorded" if @messages.any?
        if @delay && @finished.wall_ns < @delay
          return "nothing was recorded: the command ended after #{Show::Units.duration(@finished.wall_ns)}, before " \
                 "--delay #{Duration.format(@delay)} was over"
        end

        if @finished.status.signaled?
          return "nothing was recorded: the command was killed (SIG#{Signal.signame(@finished.status.termsig)}) " \
                 "before Ruby had started, or is no Ruby program"
        end

        if @duration
          return "nothing was recorded: no Ruby that Pitwall can enter ran within the times of --delay and --duration"
        end

        "nothing was recorded: no Ruby that Pitwall can enter was started (not a Ruby program, or one started by " \
          "sudo, env -i, with --disable=rubyopt or with a RUBYOPT of its own, or it ended while starting)"
      end

      # ", from 5s after the command's start on, for 30s"
      def times
        ended_before = @duration && @finished.wall_ns < @delay.to_i + @duration
        [(", from #{Duration.format(@delay)} after the command's start on" if @delay),
         (", for #{Duration.format(@duration)}#{" at most" if ended_before}" if @duration)].join
      end

      def parts = near(@destination.parts)

      def shell(path) = Shellwords.escape(path)

      # Relative where it lies below the working directory.
      def near(path) = path.delete_prefix("#{Dir.pwd}/")
    end
  end
end

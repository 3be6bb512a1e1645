# frozen_string_literal: true

require "pitwall/record/import/call_graph"
require "pitwall/record/import/call_paths"
require "pitwall/record/import/format"
require "pitwall/record/import/marshal_reader"

module Pitwall
  module Record
    module Import
      # stackprof's results, as JSON or as Ruby's Marshal. With `raw`, the file has the stacks in the order of time:
      # the number of frames, the frames from the root, and how often in a row the stack was seen. Without `raw`, the
      # file has sums of methods and of calls between them, of which call paths are estimated.
      # @api private
      class Stackprof < Format
        # Keys that tell the format.
        KEYS = %w[mode samples frames].freeze
        MICROSECOND = 1000
        # Intervals of the modes wall and cpu are below: a day in µs.
        LONGEST_INTERVAL = 86_400_000_000
        private_constant :KEYS, :MICROSECOND, :LONGEST_INTERVAL

        class << self
          def title = "stackprof"

          def fits?(source)
            return true if MarshalReader.fits?(source.beginning)

            file = source.json
            file.is_a?(Hash) && KEYS.all? { |key| file.key?(key) } && file["frames"].is_a?(Hash)
          end
        end

        def write(writer)
          read
          @paths = CallPaths.new(graph) unless stacks?
          @segment = segment(writer, sampled: @mode != "object", interval_ns: interval_ns, notes: notes,
                                     paths: (CallPaths::ESTIMATED if @paths))
          @segment.thread(THREAD, "")
          @frames = Hash.new { |frames, key| frames[key] = frame(key) }
          stacks? ? write_stacks : write_sums
          @segment.close
        end

        private

        def read
          marshal = MarshalReader.fits?(@source.beginning)
          @file = object(marshal ? MarshalReader.new(@source.bytes).read : @source.json, "the file")
          refuse("is Marshal of something else than stackprof's results") unless KEYS.all? { |key| @file.key?(key) }

          @mode = string(@file["mode"], "the mode")
          @interval = @file["interval"].nil? ? 1 : count(@file["interval"], "the interval")
          wrong("the interval", "an amount of a day at most", @interval) if @interval > LONGEST_INTERVAL

          # JSON's keys are text, Marshal's are integers.
          @infos = object(@file["frames"], "frames").to_h { |key, info| [key.to_s, object(info, "a frame")] }
        end

        def timed? = %w[wall cpu].include?(@mode)

        def interval_ns = (@interval * MICROSECOND if timed? && @interval.positive?)

        def notes
          missed = @file["missed_samples"]
          missed = 0 unless timed? && missed.is_a?(Integer)
          [("objects are estimates: 1 of #{@interval} was sampled" if @mode == "object" && @interval > 1),
           ("captures are samples that the program asked for" if @mode == "custom"),
           ("stackprof missed #{missed} sample#{"s" if missed > 1}" if missed.positive?),
           *(@paths.notes if @paths)].compact
        end

        def stacks? = @file["raw"].is_a?(Array) && @file["raw"].any?

        # Id of a frame in the recording.
        def frame(key)
          name, path, first, kind = place(key)
          @segment.frame(name, path, first, kind)
        end

        # Name, path, line of the definition and kind.
        def place(key)
          info = @infos[key] or wrong("a frame of a stack", "one of the list", key)
          name, path = string(info["name"], "a frame's name"), name(info["file"], "a frame's file")
          path = "" if path == "<cfunc>"
          [name, path, line(info["line"]), kind(name, path)]
        end

        def write_stacks
          raw, lines = @file["raw"], lines_of_stacks
          times = deltas(raw)
          at = sample = 0
          while at < raw.size
            depth = count(raw[at], "the depth of a stack")
            refuse("is damaged: the list of stacks ends within a stack") if at + depth + 1 >= raw.size

            node = (at + 1..at + depth).inject(0) do |parent, place|
              @segment.node(parent, @frames[raw[place].to_s], lines ? line(lines[place]) : 0)
            end
            times_seen = count(raw[at + depth + 1], "the number of samples of a stack")
            add(node, times_seen, times && times[sample, times_seen])
            sample += times_seen
            at += depth + 2
          end
        end

        # The running lines, at the same places as the frames of the stacks.
        def lines_of_stacks
          lines = @file["raw_lines"]
          return if lines.nil?
          return lines if list(lines, "raw_lines").size == @file["raw"].size

          refuse("is damaged: raw has #{@file["raw"].size} numbers and raw_lines #{lines.size}")
        end

        # µs since the sample before, for each sample; nil where the file has none. They are wall time.
        def deltas(raw)
          deltas = @file["raw_timestamp_deltas"]
          return if deltas.nil? || @mode != "wall"

          samples = samples_of_stacks(raw)
          return deltas if list(deltas, "raw_timestamp_deltas").size == samples

          @warnings << "has #{samples} samples and #{deltas.size} times: each sample counts for the interval"
          nil
        end

        def samples_of_stacks(raw)
          at = sum = 0
          while at < raw.size
            at += count(raw[at], "the depth of a stack") + 2
            sum += count(raw[at - 1], "the number of samples of a stack") if at <= raw.size
          end
          sum
        end

        # @param times [Array, nil] of each of these samples
        def add(node, samples, times)
          return @segment.site(node: node, count: samples * @interval) if @mode == "object"
          return add_row(node, samples, times ? 0 : samples * @interval) unless times

          # Equal stacks in a row are one row of the recording.
          add_row(node, samples, times.sum { |time| amount(time, "the time of a sample") })
        end

        def add_row(node, samples, time)
          weights = timed? ? { @mode.to_sym => time * MICROSECOND } : {}
          @segment.row(thread: THREAD, node: node, state: UNKNOWN, captures: samples, **weights)
        end

        # A file without stacks. Samples of a method by line are exact, the paths to it are not.
        def graph
          graph = CallGraph.new(1)
          numbers = @infos.keys.each_with_index.to_h
          @infos.each_value.with_index { |info, number| add_sums(graph, numbers, number, info) }
          graph
        end

        def write_sums
          @warnings << CallPaths::WARNING if @infos.any?
          @paths.each(@segment, @infos.keys.map { |key| @frames[key] }) { |node, (samples)| add(node, samples, nil) }
        end

        def add_sums(graph, numbers, number, info)
          samples = count(info["samples"], "the samples of a frame")
          lines = own_lines(info, samples)
          lines.each { |line, own| graph.own(number, line, [own]) }
          object(info["edges"] || {}, "the edges of a frame").each do |callee, weight|
            callee = numbers[callee.to_s] or wrong("the callee of a frame", "one of the list", callee)
            graph.edge(number, callee, 0, [count(weight, "the samples of an edge")])
          end
        end

        # Line → samples. What the lines lack counts for line 0.
        def own_lines(info, samples)
          found = object(info["lines"] || {}, "the lines of a frame").to_h do |line, sums|
            [line(line.to_s.to_i), count(list(sums, "the samples of a line").last, "the samples of a line")]
          end
          rest = samples - found.values.sum
          rest.negative? ? { 0 => samples } : found.merge(0 => rest) { |_, own, more| own + more }
        end
      end
      private_constant :Stackprof
    end
  end
end

# frozen_string_literal: true

require "pitwall/analyse/perf/division"
require "pitwall/analyse/perf/grafting"
require "pitwall/record"

module Pitwall
  module Joining
    # The recording of one process. Joined, it has perf's frames below Ruby's. All its sums stay what they were. Native
    # threads that Ruby does not know become threads with native frames only.
    # @api private
    class Part
      # The number of OBJS for objects of which perf knows exported functions only.
      EXPORTED = 2
      private_constant :EXPORTED

      # @return [Array<[pid, tid]>] native threads that have Ruby frames
      attr_reader :threads
      # @return [Array<Integer>]
      attr_reader :pids
      # @return [Array<[path, address…]>] where interpreters' loops are
      attr_reader :interpreters
      # @return [Array<String>] paths of objects with native frames
      attr_reader :objects

      # @raise [BadRecording]
      #: (String) -> void
      def initialize(file)
        @file = file
        segments = Record.read(file).segments
        @pids = segments.filter_map { |segment| segment.header.pid }.uniq
        @threads = segments.flat_map do |segment|
          segment.threads.each_value.map { |thread| [segment.header.pid, thread.native_id] }
        end
        @interpreters = segments.filter_map { |segment| segment.header.interpreter }.uniq
        @objects = segments.flat_map { |segment| segment.shared_objects.map(&:path) }.uniq
      end

      # Writes the part anew. After a failure it is as it was.
      # @return [Integer] samples of perf that are in it
      #: (Seen, Array[String]) -> Integer
      def join(seen, problems)
        return 0 if (@pids & seen.pids).empty?

        written = "#{@file}.joined"
        joined = 0
        File.open(written, "wb", 0o600) do |io|
          Record.rewrite(@file, io) do |segment, out|
            Segment.new(segment, out, seen).call.tap { |stats| joined += stats.fetch("perf_joined") }
          end
        end
        File.rename(written, @file)
        joined
      rescue BadRecording, SystemCallError => error
        problems << "perf's frames are missing in a part: #{error.message}"
        File.unlink(written) if File.exist?(written)
        0
      end

      # Joins one segment.
      class Segment
        #: (Record::Segment, untyped, Seen) -> void
        def initialize(segment, out, seen)
          @segment = segment
          @out = out
          @seen = seen
          @pid = segment.header.pid
          @from = segment.stat("started_monotonic_ns")
          @to = @from + segment.stat("elapsed_ns")
        end

        # @return [Hash{String => Integer}] keys of STAT
        #: () -> Hash[String, Integer]
        def call
          return { "perf_samples" => 0, "perf_joined" => 0 } unless @from.positive?

          @grafting = Analyse::Perf::Grafting.new(@segment)
          @nodes = {}
          division = divide
          @foreign = 0
          add_other_threads
          name_objects
          samples = @seen.threads(@pid).each_key.sum { |tid| inside(@seen.of(@pid, tid)).size }
          { "perf_samples" => samples, "perf_joined" => division.placed + @foreign }
        end

        private

        def divide
          threads = @segment.threads.each_value
          division = Analyse::Perf::Division.new(
            samples: threads.to_h { |thread| [thread.id, samples(thread.native_id)] }.compact,
            starts: threads.to_h { |thread| [thread.id, @from + thread.start_ns] }, unit_ns: @segment.unit_ns
          )
          @segment.each_rows { |rows| put(division, rows.to_enum(:each).to_a) }
          put(division, @segment.open_rows.map { |row| [*row.first(5), 0, row.last] })
          division
        end

        def samples(tid) = tid.positive? ? (@known ||= {})[tid] ||= @seen.of(@pid, tid) : nil

        def put(division, rows)
          division.call(rows).each do |(thread, state, node, wall, cpu, captures, label), tail|
            @out.row(thread: thread, state: state, node: tail ? node_of(node, tail) : node, wall: wall, cpu: cpu,
                     captures: captures, labels: label)
          end
        end

        # The node of a stack of the recording with one of perf's below it.
        def node_of(node, tail)
          (@nodes[node] ||= {})[tail] ||= begin
            parent, frames = @grafting.call(node, @seen.stack(tail))
            add(parent, frames)
          end
        end

        def add(node, frames)
          frames.inject(node) do |parent, frame|
            @out.node(parent, @out.frame(frame.name, frame.path, 0, Record::Frame::NATIVE))
          end
        end

        # Native threads that have no Ruby thread, while the process was recorded. perf sees them on the CPU only.
        def add_other_threads
          known = @segment.threads.each_value.map(&:native_id)
          id = @segment.threads.keys.max || 0
          (@seen.threads(@pid).keys - known).each do |tid|
            samples = @seen.of(@pid, tid)
            places = inside(samples)
            next if places.empty?

            start = samples.times[places.first] - @from
            @out.thread(id += 1, @seen.threads(@pid)[tid], native_id: tid, start_ns: start)
            places.each { |at| add_sample(id, samples.periods[at], samples.tails[at]) }
            @foreign += places.size
          end
        end

        def add_sample(id, period, tail)
          time = [period / @segment.unit_ns, 1].max
          node = tail ? add(0, @seen.stack(tail)) : 0
          @out.row(thread: id, node: node, wall: time, cpu: time)
        end

        # Places of the samples that were taken while the process was recorded.
        def inside(samples) = samples.times.each_index.select { |at| samples.times[at].between?(@from, @to) }

        # Objects that the segment did not name yet.
        def name_objects
          known = @segment.shared_objects.map(&:path)
          used = @nodes.empty? && @foreign.zero? ? {} : @seen.objects
          used.each { |path, id| @out.shared_object(path, id, EXPORTED) unless known.include?(path) }
        end
      end
      private_constant :Segment
    end
  end
end

# frozen_string_literal: true

require "pitwall/analyse/perf/division"
require "pitwall/record/import"

module Pitwall
  module Joining
    # The samples that perf took of all processes, by process and thread. A sample takes 20 bytes. Stacks are kept once.
    # @api private
    class Seen
      # Samples and distinct stacks that are kept. Further samples are counted and left out.
      SAMPLES = 4_000_000
      STACKS = 500_000
      # Frames of the deepest stack, from the leaf on.
      DEPTH = 1000
      # A sample's row: monotonic ns, ns of CPU time, number of the stack.
      ROW = "q<q<l<"
      ROW_BYTES = 20
      # Threads of Pitwall's own.
      OWN = /\Apitwall /.freeze
      Thread = Struct.new(:comm, :rows)
      private_constant :SAMPLES, :STACKS, :DEPTH, :ROW, :ROW_BYTES, :OWN, :Thread

      # @return [Integer] samples of the command's processes
      attr_reader :samples
      # @return [Integer] those for which there was no room
      attr_reader :left_out

      # @param parts [Array<Part>] what recorded itself: its threads have Ruby frames
      # @param ignore [Array<Integer>] ids of processes
      #: (Array[Part], ignore: Array[Integer]) -> void
      def initialize(parts, ignore:)
        @ruby = Hash.new { |known, pid| known[pid] = {} }
        parts.each { |part| part.threads.each { |pid, tid| @ruby[pid][tid] = true } }
        @ignore = ignore
        @names = NativeNames.new(parts.flat_map(&:interpreters), parts.flat_map(&:objects))
        @processes = {}
        @own = {} # native thread → process
        @stacks = {}
        @samples = @left_out = 0
      end

      # @raise [BadRecording]
      #: (untyped) -> void
      def read(text) = Record::Import.perf_samples(text, "perf") { |sample| take(sample) }

      # Ids of the processes.
      #: () -> Array[Integer]
      def pids = @processes.reject { |_, threads| threads.empty? }.keys

      # Ids of a process's native threads, with what perf calls them.
      #: (Integer) -> Hash[Integer, String]
      def threads(pid) = @processes.fetch(pid, {}).transform_values(&:comm)

      # The samples of a native thread. Their tails are numbers of stacks, nil for an empty one.
      #: (Integer, Integer) -> Analyse::Perf::Division::Samples?
      def of(pid, tid)
        thread = @processes.dig(pid, tid) or return
        rows = Array.new(thread.rows.bytesize / ROW_BYTES) { |at| thread.rows.unpack("@#{at * ROW_BYTES}#{ROW}") }
        rows.sort_by!(&:first) unless rows.each_cons(2).all? { |one, other| one.first <= other.first }
        times, periods, tails = rows.empty? ? [[], [], []] : rows.transpose
        Analyse::Perf::Division::Samples.new(times, periods, tails.map { |number| number.zero? ? nil : number })
      end

      # The frames of a stack, the outermost first.
      # @return [Array<NativeNames::Named>]
      #: (Integer) -> Array[untyped]
      def stack(number) = (@by_number ||= @stacks.keys).fetch(number - 1)

      # Objects that have functions without a symbol: path → build id.
      #: () -> Hash[String, String]
      def objects = @objects ||= @names.objects

      private

      def take(sample)
        pid, tid, time = sample.pid, sample.tid, sample.time_ns
        return if pid.nil? || tid.nil? || time.nil? || @ignore.include?(pid)
        return drop(pid, tid) if OWN.match?(sample.comm) || @own[tid] == pid

        frames = frames(sample, @ruby.key?(pid) && @ruby[pid].key?(tid)) or return
        @samples += 1
        number = number(frames)
        return @left_out += 1 unless number && @samples - @left_out <= SAMPLES

        thread = (@processes[pid] ||= {})[tid] ||= Thread.new(sample.comm, "".b)
        thread.comm = sample.comm
        thread.rows << [time, sample.period || 1, number].pack(ROW)
      end

      # A thread of Pitwall's gets its name after its start.
      def drop(pid, tid)
        @own[tid] = pid
        thread = @processes[pid]&.delete(tid) or return
        @samples -= thread.rows.bytesize / ROW_BYTES
      end

      def number(frames)
        return 0 if frames.empty?

        @stacks[frames] || (@stacks.size < STACKS ? @stacks[frames] = @stacks.size + 1 : nil)
      end

      # The native frames, the outermost first: below the Ruby stack, or all where there is none. The interpreter's loop
      # runs the innermost Ruby method, and so does compiled code. What follows behind a frame that could not be unwound
      # is wrong.
      # @return nil: of Pitwall's own handler
      def frames(sample, below_ruby)
        found = []
        stack = sample.stack.zip(sample.addresses).map { |frame, address| @names.call(frame, address) }
        return if stack.any? { |named| named.role == :own }

        stack.each do |named|
          break if found.size >= DEPTH

          if below_ruby && named.role != :function && named.role != :kernel
            found << named if named.role != :interpreter && found.none? { |inner| inner.role == :function }
            break
          end
          found << named
        end
        found.reverse
      end
    end
  end
end

# frozen_string_literal: true

module Pitwall
  module Bench
    # Runs the processes of one block in turns, a batch at a time: A B B A A B B A…
    #
    # A core may be slower for a tenth of a second, because of heat or of other programs. In turns it is then slower for
    # all sides alike, and the slowness cancels out of their ratio. Measured on a shared core: the spread of ln(B/A)
    # between pairs was 14 to 27% with one process after the other, and 0.6 to 1.7% in turns. Each side still has a
    # process of its own, and all other processes wait while one is timed.
    #
    # A process writes a byte when it waits for its turn. Its turn begins when it reads a byte. Its turns are, in this
    # order: warm-up, each batch, its report.
    class Turns
      # Descriptors in the process. It reads from the first before its turn, and writes to the second after its turn.
      TAKE_FD = 8
      PASS_FD = 9
      GO = "g"
      POLL_S = 0.05
      # The time that the batches of one side should take together.
      TIMED_NS = 300_000_000
      MAX_BATCHES = 100
      private_constant :GO, :POLL_S, :TIMED_NS, :MAX_BATCHES

      # The host's side of one process.
      #
      # go_writer:    IO; a byte here begins the process's turn
      # done_reader:  IO; a byte here ends the process's turn
      # process_ends: [IO, IO], the other ends, which the process inherits
      # batches:      number of batches that the process times
      # among:        number of processes that take turns
      # thread:       the Thread that follows the process
      Seat = Struct.new(:go_writer, :done_reader, :process_ends, :batches, :among, :thread, keyword_init: true) do
        # The descriptors that the process is started with.
        #: () -> Hash[Integer, IO]
        def descriptors = { TAKE_FD => process_ends[0], PASS_FD => process_ends[1] }

        # Called when the process has been started: it has its own copies of the descriptors.
        #: () -> void
        def started = process_ends.each { |io| io.close unless io.closed? }

        # A process that still waits for a turn then ends.
        #: () -> void
        def close = [go_writer, done_reader, *process_ends].each { |io| io.close unless io.closed? }
      end

      # Gives all sides more batches, as long as the batches take little time. Many short turns spread a disturbance
      # more evenly over the sides than few turns do.
      # @param calibrations [Array<Script::Calibration>] with the same batch and number of batches; changed
      def self.extend(calibrations)
        slowest_ns = calibrations.map { |calibration| calibration.batch * calibration.iteration_ns }.max
        batches = TIMED_NS.fdiv(slowest_ns).floor
        calibrations.each do |calibration|
          calibration.batches = batches.clamp(calibration.batches, [MAX_BATCHES, calibration.batches].max)
        end
      end

      # Runs all jobs in turns, alternately in the given order and in reverse order.
      # @param batches [Array<Integer>] number of batches of each job
      # @yield [job's index, Seat] takes the sample, in a thread of its own. It must call {Seat#started} when the
      #   process has been started.
      # @return [Array] the block's value for each job
      # @raise the exception of the first job that failed
      #: [T] (Array[Integer]) { (Integer, Seat) -> T } -> Array[T]
      def self.run(batches, &block) = new(batches).run(&block)

      def initialize(batches)
        @seats = batches.map { |count| seat(count, batches.size) }
      end

      # @api private
      def run
        @seats.each_with_index do |seat, at|
          seat.thread = Thread.new { yield at, seat }
          seat.thread.report_on_exception = false
        end
        schedule
        @seats.map { |seat| seat.thread.value }
      ensure
        @seats.each { |seat| seat.thread&.kill }
        @seats.each { |seat| seat.thread&.join rescue nil } # an exception is already on its way to the caller
        @seats.each(&:close)
      end

      private

      def seat(batches, among)
        go_reader, go_writer = IO.pipe
        done_reader, done_writer = IO.pipe
        go_writer.sync = true
        Seat.new(go_writer: go_writer, done_reader: done_reader, process_ends: [go_reader, done_writer],
                 batches: batches, among: among)
      end

      # Gives out the turns: first the warm-ups, then the batches, then the reports. A process that ends too early ends
      # the whole block: its thread raises the reason.
      def schedule
        @seats.each { |seat| wait(seat) }
        @seats.each { |seat| turn(seat) }
        left = @seats.map(&:batches)
        order = @seats.each_index.to_a
        while left.any?(&:positive?)
          order.each { |at| turn(@seats[at]) if (left[at] -= 1) >= 0 }
          order.reverse!
        end
        # One report after the other: a process that reports would disturb the next.
        @seats.each { |seat| give(seat) && seat.thread.value }
      end

      def turn(seat)
        give(seat)
        wait(seat)
      end

      def give(seat)
        seat.go_writer.write(GO)
      rescue Errno::EPIPE
        raise_early_end(seat)
      end

      def wait(seat)
        until IO.select([seat.done_reader], nil, nil, POLL_S)
          raise_early_end(seat) unless seat.thread.alive?
        end
        raise_early_end(seat) unless seat.done_reader.read_nonblock(1, exception: false).is_a?(String)
      end

      def raise_early_end(seat)
        seat.thread.value # raises the reason, if the thread knows it
        raise Failed, "a process ended in the middle of its turns"
      end
    end
  end
end

# frozen_string_literal: true

module Pitwall
  module Bench
    # Lets the processes of one block run in turns, a batch at a time: A B B A A B B A…
    #
    # A core that is slower for a tenth of a second, because of heat or of whoever else has it, then is slower for all sides alike, and
    # that cancels out of their ratio. (Measured on a shared core: the spread of ln(B/A) between pairs was 14 to 27% with one process
    # after the other, 0.6 to 1.7% in turns.) Each side still has a process of its own, and nobody runs while another is timed.
    #
    # A process says a byte when it waits for its turn, and takes its turn when it gets one: loaded, then warm-up, then each batch,
    # then its report.
    class Turns
      # A process's descriptors in its own process: its turn comes by the first, and it ends it by the second.
      TAKE_FD = 8
      PASS_FD = 9
      GO = "g"
      POLL = 0.05
      # What one side's batches should take together.
      TIMED_NS = 300_000_000
      MOST_BATCHES = 100
      private_constant :GO, :POLL, :TIMED_NS, :MOST_BATCHES

      # One process's end here: what is to be mapped into it, and how many take turns.
      Seat = Struct.new(:give, :taken, :theirs, :batches, :among, :thread, keyword_init: true) do
        #: () -> Hash[Integer, IO]
        def descriptors = { TAKE_FD => theirs[0], PASS_FD => theirs[1] }

        # The process has its copies by now.
        #: () -> void
        def started = theirs.each { |io| io.close unless io.closed? }

        # Whoever still waits for a turn ends.
        #: () -> void
        def close = [give, taken, *theirs].each { |io| io.close unless io.closed? }
      end

      # In turns, many short batches see the machine alike sooner than few: gives all sides as many more as take little time.
      # @param calibrations [Array<Script::Calibration>] with the same batch and number of batches; changed
      def self.extend(calibrations)
        batches = TIMED_NS.fdiv(calibrations.map { |calibration| calibration.batch * calibration.iteration_ns }.max).floor
        calibrations.each { |calibration| calibration.batches = batches.clamp(calibration.batches, [MOST_BATCHES, calibration.batches].max) }
      end

      # Runs all jobs in turns, in the order given and back.
      # @param batches [Array<Integer>] how many each job times
      # @yield [job's index, Seat] takes the sample; called in a thread of its own; must call {Seat#started} when the process has been started
      # @return [Array] what the block gave for each
      # @raise what the first job that failed raised
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
        conduct
        @seats.map { |seat| seat.thread.value }
      ensure
        @seats.each { |seat| seat.thread&.kill }
        @seats.each { |seat| seat.thread&.join rescue nil } # what it raised was raised before, or another's is
        @seats.each(&:close)
      end

      private

      def seat(batches, among)
        take, give = IO.pipe
        taken, pass = IO.pipe
        give.sync = true
        Seat.new(give: give, taken: taken, theirs: [take, pass], batches: batches, among: among)
      end

      # A process that ends too early ends it all: its thread says why.
      def conduct
        @seats.each { |seat| wait(seat) }
        @seats.each { |seat| turn(seat) }
        left = @seats.map(&:batches)
        order = @seats.each_index.to_a
        while left.any?(&:positive?)
          order.each { |at| turn(@seats[at]) if (left[at] -= 1) >= 0 }
          order.reverse!
        end
        # One after the other here as well: reporting takes time that the next would miss.
        @seats.each { |seat| give(seat) && seat.thread.value }
      end

      def turn(seat)
        give(seat)
        wait(seat)
      end

      def give(seat)
        seat.give.write(GO)
      rescue Errno::EPIPE
        gone(seat)
      end

      def wait(seat)
        until IO.select([seat.taken], nil, nil, POLL)
          gone(seat) unless seat.thread.alive?
        end
        gone(seat) unless seat.taken.read_nonblock(1, exception: false).is_a?(String)
      end

      def gone(seat)
        seat.thread.value # raises what is to be said
        raise Failed, "a process ended in the middle of its turns"
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/import/format"
require "pitwall/record/import/perf_script/samples"

module Pitwall
  module Record
    module Import
      # The text that `perf script` prints of a recording of `perf record`:
      #
      #   ruby  7027/7027   8187.619485:    1001001 task-clock:
      #   ⇥        2098bd rb_ary_push+0x1d (/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2)
      #   ⇥        20e0e1 ruby_init_stack+0x61 (/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2)
      #
      # Each process becomes a segment. The periods of clocks are ns of CPU time. perf samples no thread that waits, so
      # wall time is the same. The periods of other events are counts, which become the weight captures.
      #
      # Reading order: perf_script/headers.rb (the first line of a sample), perf_script/frames.rb (the lines of its
      # stack), perf_script/samples.rb (the text).
      class PerfScript < Format
        # Events whose periods are ns of CPU time.
        CLOCK = /\A(?:task-clock|cpu-clock)(?::|\z)/.freeze
        # The process of threads whose process the text doesn't tell.
        NOBODY = -1
        # Lines that tell the format, and how many of them have to be of it.
        LOOKED_AT = 200
        LEAST = 0.7
        # Segments that a recording holds, less one for all further processes.
        PROCESSES = 9000
        private_constant :CLOCK, :NOBODY, :LOOKED_AT, :LEAST, :PROCESSES

        # A process while it is read. threads: tid or name → number · names: number → name
        Program = Struct.new(:segment, :threads, :names, :nodes)
        private_constant :Program

        class << self
          #: () -> String
          def title = "perf script"

          # Most lines are of it, and some of them are frames behind a tab or lines with a time and an event. Lines of
          # the source, which `-F +srcline` adds, may be anything.
          #: (Source) -> bool
          def fits?(source)
            lines = source.beginning.dup.force_encoding(Encoding::UTF_8).scrub("?").split(/\r?\n/)
            lines = lines.reject { |line| line.match?(/\A(?:\s*\z|#|  \S)/) }.first(LOOKED_AT)
            return false if lines.none? { |line| line.match?(/\A\t\s*\h+(?: |\z)|\d\.\d{6,9}:\s.*\S:(?:\s|\z)/) }

            Samples.fitting(lines) >= lines.size * LEAST
          end
        end

        # @raise [Malformed] no samples, or none of the event that was asked for
        #: (Writer) -> void
        def write(writer)
          @writer = writer
          @processes = {}
          @events = Hash.new(0)
          @without_period = 0
          samples = Samples.new(@source)
          samples.each { |sample| take(sample) }
          check
          finish
          warn_of(samples)
        end

        private

        def take(sample)
          event = sample.event.to_s
          @events[event] += 1
          @event ||= event if @type.nil? || event == @type || event.start_with?("#{@type}:")
          return unless @event == event

          process = process(sample)
          @without_period += 1 unless sample.period
          process.segment.row(thread: thread(process, sample), node: node(process, sample), **weights(sample))
        end

        # What the row of a sample weighs. A clock's sample without a period counts as one, like that of a file without
        # events.
        def weights(sample)
          return { captures: sample.period || 1 } unless CLOCK.match?(sample.event.to_s)

          period = sample.period || 0
          { wall: period, cpu: period, captures: 1 }
        end

        def process(sample)
          pid = sample.pid || NOBODY
          pid = NOBODY unless @processes.key?(pid) || @processes.size < PROCESSES
          @processes[pid] ||= Program.new(begin_segment(pid, sample), {}, {}, {})
        end

        def begin_segment(pid, sample)
          segment(@writer, notes: notes, pid: (pid if pid >= 0), program: (sample.comm unless sample.comm.empty?))
        end

        def notes
          return ["perf saw threads on the CPU only: wall time is CPU time"] if CLOCK.match?(@event)

          @event.empty? ? [] : ["captures are counts of #{@event}"]
        end

        # The number of a sample's thread. A thread has the name that it had last.
        def thread(process, sample)
          number = process.threads[sample.tid || sample.comm] ||= process.threads.size + 1
          process.names[number] = sample.comm
          number
        end

        # The node of a stack. perf's stacks begin with the leaf.
        def node(process, sample)
          segment, nodes = process.segment, process.nodes
          at = 0
          sample.stack.reverse_each do |frame|
            id = nodes[frame] ||= segment.frame(frame.name, frame.path, frame.line, frame.kind)
            at = segment.node(at, id)
          end
          at
        end

        def check
          return if @processes.any?

          refuse("holds no samples") if @events.empty?
          refuse("has no event #{@type}: it has #{@events.keys.join(", ")}")
        end

        def finish
          @processes.each_value do |process|
            process.threads.each do |tid, number|
              process.segment.thread(number, process.names[number], native_id: tid.is_a?(Integer) ? [tid, 0].max : 0)
            end
            process.segment.close
          end
        end

        def warn_of(samples)
          others = @events.reject { |name, _| name == @event }
          if others.any?
            @warnings << "has #{@events.size} events: #{@event} was taken, " \
                         "not #{others.map { |name, count| "#{name} (#{count})" }.join(", ")}"
          end
          if @without_period.positive?
            @warnings << "says no periods: each sample counts the same"
          end
          @warnings << "ends within a sample, which was left out" if samples.cut?
          return unless samples.unreadable.positive?

          lines = samples.unreadable == 1 ? "a line" : "#{samples.unreadable} lines"
          first = "the first: " if samples.unreadable > 1
          @warnings << "#{lines} could not be read (#{first}#{samples.first_unreadable.slice(0, 60).dump})"
        end
      end
      private_constant :PerfScript
    end
  end
end

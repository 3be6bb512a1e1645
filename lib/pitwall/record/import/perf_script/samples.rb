# frozen_string_literal: true

require "pitwall/record/import/perf_script/frames"
require "pitwall/record/import/perf_script/headers"

module Pitwall
  module Record
    module Import
      class PerfScript < Format
        # One sample. Fields that the file does not have are nil.
        #
        # comm: the thread's name · pid, tid: of the kernel · time_ns: of perf's clock · period: how much of the event
        # it stands for (ns for the clocks) · event: "task-clock" · stack: frames, the leaf first · addresses: of these,
        # in hexadecimal; "" for a sample without a stack
        Sample = Struct.new(:comm, :pid, :tid, :time_ns, :period, :event, :stack, :addresses)

        # Reads the samples of the text, line by line in bounded memory. A line that is no part of a sample is counted
        # and skipped.
        # @api private
        class Samples
          # Bytes of the longest line. A longer one is skipped.
          LINE = 1 << 16
          # Frames of the deepest stack. Further ones, at the root, are left out.
          DEPTH = 10_000
          # Threads whose process is remembered.
          THREADS = 1_000_000
          # Events that tell of processes, as `--show-task-events` prints them.
          TASK = /\APERF_RECORD_(?:COMM(?: exec)?: .*:(?<pid>\d+)\/(?<tid>\d+)|FORK\((?<pid>\d+):(?<tid>\d+)\))/.freeze
          private_constant :LINE, :DEPTH, :THREADS, :TASK

          # How many of a file's first lines are of this format.
          #: (Array[String]) -> Integer
          def self.fitting(lines)
            frames = Frames.new
            lines.count { |line| line.start_with?("\t") ? frames.read(line) : Headers.strong(line) }
          end

          # @return [Integer] lines that are no part of a sample
          attr_reader :unreadable
          # @return [String, nil] the first of these
          attr_reader :first_unreadable

          # @param source [#each_line] yields lines without their ends, in valid UTF-8
          #: (Source) -> void
          def initialize(source)
            @source = source
            @frames = Frames.new
            @unreadable = 0
            @pids = {}
            @cut = false
          end

          # Whether the file ends within a sample. That sample is left out.
          #: () -> bool
          def cut? = @cut

          # Reads the text, once.
          # @yield [Sample]
          #: () { (Sample) -> void } -> void
          def each(&block)
            @block = block
            @header = @weak = nil
            @stack = []
            @source.each_line { |line| line.bytesize > LINE ? refuse(line) : take(line) }
            @cut = !@stack.empty?
            finish unless @cut
          end

          private

          def take(line)
            if line.match?(/\A\s*\z/) then finish
            elsif line.start_with?("\t") then frame(line)
            elsif line.start_with?("#") && @stack.empty? then nil
            else other(line)
            end
          end

          def frame(line)
            address, frame = @frames.read(line)
            return refuse(line) unless frame

            @header ||= begin_without_line
            @stack << [address, frame] if @stack.size < DEPTH
          end

          # With `-F ip,sym` nothing but frames is printed. Otherwise the line before the frames may begin the sample.
          def begin_without_line
            weak, @weak = @weak, nil
            (weak && Headers.weak(weak)) || Header.new("", nil, nil, nil, nil, nil, "")
          end

          # A line that begins a sample, belongs to the frame above it (a place in the source), or is neither.
          def other(line)
            header = Headers.strong(line)
            if header then start(header)
            elsif line.start_with?(" ") && (@header || @weak)
              frame(line) if @frames.read(line) # tabs became spaces
            else hold(line)
            end
          end

          def hold(line)
            finish
            refuse(@weak) if @weak
            @weak = line
          end

          def start(header)
            finish
            return remember(TASK.match(header.event)) if header.event&.start_with?("PERF_RECORD_")

            @header = header
            found = @frames.read(header.rest) if header.rest.end_with?(")") || header.rest.match?(/\A\h+\z/)
            return unless found

            @stack << found
            finish
          end

          def remember(task)
            @pids[task[:tid].to_i] = task[:pid].to_i if task && @pids.size < THREADS
          end

          def finish
            refuse(@weak) if @weak
            @weak = nil
            header, stack = @header, @stack
            @header = nil
            @stack = []
            return unless header

            pid = header.pid || @pids[header.tid]
            @block.call(Sample.new(header.comm, pid, header.tid, header.time_ns, header.period, header.event,
                                   whole(stack), stack.empty? ? [""] : stack.map(&:first)))
          end

          # The frames, each with its object. An inlined function has that of the function around it, which follows with
          # the same address.
          def whole(stack)
            return [@frames.none] if stack.empty?

            outer, path = nil, ""
            stack.reverse.map do |address, frame|
              if frame.path.nil? then next @frames.inlined_in(frame, address == outer ? path : "") end

              outer, path = address, frame.path
              frame
            end.reverse
          end

          def refuse(line)
            @unreadable += 1
            @first_unreadable ||= line
          end
        end
      end
    end
  end
end

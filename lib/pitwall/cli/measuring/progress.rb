# frozen_string_literal: true

require "io/console"
require "ruby-progressbar"
require "pitwall/experiment"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module CLI
    # Shows on a terminal what an experiment does, and the time it may still take; is silent elsewhere.
    # But for one line, which says beforehand how long it takes at most, everything it wrote is gone when it ends.
    class Progress < Experiment::Silence
      CLEAR_LINE = "\r\e[K"
      TITLE = 30 # columns
      COLUMNS = 80 # where the terminal doesn't say
      FORMAT = "%t |%B| %c of at most %C"
      private_constant :CLEAR_LINE, :TITLE, :COLUMNS, :FORMAT

      # For a stream: one that shows on a terminal, one that keeps silent elsewhere.
      #: (IO) -> Experiment::Silence
      def self.on(io, quiet: false) = !quiet && io.respond_to?(:tty?) && io.tty? ? new(io) : Experiment::Silence.new

      def initialize(io)
        super()
        @io = io
      end

      # Most verdicts come sooner.
      def expect(cases:, seconds:, longest:, pairs: nil)
        self.end
        text = "#{Show::Units.things(cases, "case")}: #{"#{Show::Units.things(pairs, "pair")}, " if pairs}at most #{time(cases * seconds)}"
        slow = ", #{time(cases * longest)} if pairs are slow"
        text += slow if text.size + slow.size < columns
        @io.puts(text)
      end

      # Something without a known length.
      def step(text)
        self.end
        @io.print(Show::Text.shorten_right(Show::Text.safe(text), columns - 2), "…")
        @stepping = true
      end

      # The bar never finishes by itself, as it would leave its line behind.
      def begin(title, blocks)
        self.end
        title = Show::Text.shorten_right(Show::Text.safe(title), TITLE)
        @started = clock
        @bar = ProgressBar.create(title: title, total: [blocks, 1].max, output: @io, format: FORMAT, autofinish: false, throttle_rate: 0)
      rescue ProgressBar::InvalidProgressError
        @bar = nil
      end

      # One block more.
      def advance
        return unless @bar && @bar.progress < @bar.total

        done = @bar.progress + 1
        @bar.format = "#{FORMAT}, #{left((clock - @started) / done * (@bar.total - done))} left"
        @bar.progress = done
      end

      # Takes away what it wrote.
      def end
        @io.print(CLEAR_LINE) if @bar || @stepping
        @bar = @stepping = nil
      end

      private

      # An upper bound: most verdicts come before the last block.
      def left(seconds) = time(seconds)

      def time(seconds) = seconds < 90 ? "#{seconds.ceil} s" : "#{(seconds / 60.0).ceil} min"

      def columns
        width = @io.winsize.last
        width.positive? ? width : COLUMNS
      rescue SystemCallError, NoMethodError
        COLUMNS
      end

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

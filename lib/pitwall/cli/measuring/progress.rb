# frozen_string_literal: true

require "io/console"
require "ruby-progressbar"
require "pitwall/experiment"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module CLI
    # Shows an experiment's progress on a terminal: the current case, and the time that is left.
    # One line before the experiment tells how long the experiment takes at most. All other output is erased at the end.
    class Progress < Experiment::NullProgress
      CLEAR_LINE = "\r\e[K"
      TITLE = 30 # columns of the progress bar's title
      COLUMNS = 80 # width of a terminal whose width is unknown
      FORMAT = "%t |%B| %c of at most %C"
      private_constant :CLEAR_LINE, :TITLE, :COLUMNS, :FORMAT

      # A Progress for a terminal; a NullProgress for any other stream, or with `quiet`.
      #: (IO, ?quiet: bool) -> Experiment::NullProgress
      def self.on(io, quiet: false)
        !quiet && io.respond_to?(:tty?) && io.tty? ? new(io) : Experiment::NullProgress.new
      end

      #: (IO) -> void
      def initialize(io)
        super()
        @io = io
      end

      # Prints how long the experiment takes at most. Most cases are decided sooner.
      # @see Experiment::NullProgress#expect
      #: (cases: Integer, seconds: Numeric, longest: Numeric, ?pairs: Integer?) -> void
      def expect(cases:, seconds:, longest:, pairs: nil)
        self.end
        text = "#{Show::Units.things(cases, "case")}: #{"#{Show::Units.things(pairs, "pair")}, " if pairs}at most " \
               "#{time(cases * seconds)}"
        slow = ", #{time(cases * longest)} if pairs are slow"
        text += slow if text.size + slow.size < columns
        @io.puts(text)
      end

      # Shows a step of unknown length.
      #: (String) -> void
      def step(text)
        self.end
        @io.print(Show::Text.shorten_right(Show::Text.safe(text), columns - 2), "…")
        @stepping = true
      end

      # Shows a progress bar for a number of blocks. `autofinish` is off: a finished bar's line could not be erased.
      #: (String, Integer) -> void
      def begin(title, blocks)
        self.end
        title = Show::Text.shorten_right(Show::Text.safe(title), TITLE)
        @started = clock
        @bar = ProgressBar.create(title: title, total: [blocks, 1].max, output: @io, format: FORMAT,
                                  autofinish: false, throttle_rate: 0)
      rescue ProgressBar::InvalidProgressError
        @bar = nil
      end

      # Advances the bar by one block.
      #: () -> void
      def advance
        return unless @bar && @bar.progress < @bar.total

        done = @bar.progress + 1
        @bar.format = "#{FORMAT}, #{left((clock - @started) / done * (@bar.total - done))} left"
        @bar.progress = done
      end

      # Erases the bar or the step.
      #: () -> void
      def end
        @io.print(CLEAR_LINE) if @bar || @stepping
        @bar = @stepping = nil
      end

      private

      # The time left is an upper limit: most cases are decided before the last block.
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

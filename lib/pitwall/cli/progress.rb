# frozen_string_literal: true

require "ruby-progressbar"
require "pitwall/experiment"

module Pitwall
  module CLI
    # Shows on a terminal what an experiment does, and the time it may still take; is silent elsewhere.
    # Everything it wrote is gone when it ends.
    class Progress < Experiment::Silence
      CLEAR_LINE = "\r\e[K"
      TITLE = 30 # columns
      private_constant :CLEAR_LINE, :TITLE

      # For a stream: one that shows on a terminal, one that keeps silent elsewhere.
      #: (IO) -> Experiment::Silence
      def self.on(io, quiet: false) = !quiet && io.respond_to?(:tty?) && io.tty? ? new(io) : Experiment::Silence.new

      def initialize(io)
        super()
        @io = io
      end

      # Something without a known length.
      def step(text)
        self.end
        @io.print(CLEAR_LINE, Show::Text.shorten_right(Show::Text.safe(text), 78), "…")
        @stepping = true
      end

      # The estimate is an upper bound: most verdicts come before the last block.
      def begin(title, blocks)
        self.end
        title = Show::Text.shorten_right(Show::Text.safe(title), TITLE)
        @bar = ProgressBar.create(title: title, total: [blocks, 1].max, output: @io, format: "%t |%B| %c of at most %C, %E", remove_zeroes: true, throttle_rate: 0.1)
      rescue ProgressBar::InvalidProgressError
        @bar = nil
      end

      # One block more.
      def advance
        @bar.progress += 1 if @bar && @bar.progress < @bar.total
      end

      # Takes away what it wrote.
      def end
        @bar&.stop unless @bar&.finished?
        @io.print(CLEAR_LINE) if @bar || @stepping
        @bar = @stepping = nil
      end
    end
  end
end

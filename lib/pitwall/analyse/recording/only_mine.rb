# frozen_string_literal: true

require "pitwall/analyse/recording/frame_filter"
require "pitwall/analyse/recording/origin"

module Pitwall
  module Analyse
    # Makes recordings that show the application's code only (--only-mine). Code that no frame of the application called
    # becomes "(other code)". Garbage collection keeps its frames.
    class OnlyMine < FrameFilter
      # @param origin [Origin] tells the application's code from other code
      #: (Origin) -> void
      def initialize(origin)
        super(->(frame) { frame.kind == Record::Frame::GC || origin.mine?(frame) })
      end
    end
  end
end

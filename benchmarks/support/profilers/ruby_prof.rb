# frozen_string_literal: true

require "ruby-prof"
require_relative "none"

module Benchmarks
  module Profilers
    class RubyProfCase < NoneCase
      def start
        @profile = RubyProf::Profile.new(measure_mode: RubyProf::WALL_TIME)
        @profile.start
      end

      def stop = @profile.stop
    end
  end
end

# frozen_string_literal: true

require_relative "recorded_program"
require_relative "../stress/stress"

# Programs whose threads share native threads.
module MNProgram
  include RecordedProgram

  MN = { "RUBY_MN_THREADS" => "1", "RUBY_MAX_CPU" => "4" }.freeze

  def settings = @settings || {}

  def each_mode(**more)
    Stress::MODES.each do |mode|
      @settings = { mode: mode, **more }
      yield mode
    end
  end

  # Without Ruby's own end: 3.4.11 crashes there under M:N in one of sixty processes, also where nothing is recorded.
  def run_mn(source) = run_program("#{source}\nexit!(0)\n", env: MN, options: ["-W0"])
end

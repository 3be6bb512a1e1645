# frozen_string_literal: true

require "rbconfig"

lib = File.expand_path("../../lib", __dir__)
$LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
require "pitwall/version"
require "pitwall/native"
require "pitwall/analyse"
require "pitwall/experiment"
require "pitwall/bench/blocks"
require "pitwall/bench/host"
require "pitwall/bench/subject"

module Benchmarks
  # Programs in which a difference of known size is planted (programs/planted). Both sides run the same file with the
  # same length of environment, B with more units of work.
  class Planted
    # A run with work of 0 shows the part of a command in which nothing can be planted. So many pairs tell that share to
    # a percent, and the difference to 0.02%.
    SHARE_PAIRS = 12
    FOLDER = File.expand_path("../programs/planted", __dir__)
    private_constant :SHARE_PAIRS, :FOLDER

    attr_reader :name, :class_name, :units

    # command: whether the whole process is measured, or a method in it
    def initialize(name, class_name, command: false)
      @name = name
      @class_name = class_name
      @command = command
      require file
      @units = ::Planted.const_get(class_name)::UNITS
    end

    def command? = @command
    def file = File.join(FOLDER, "#{name}.rb")
    def words = [RbConfig.ruby, file]

    # The units that take `planted` (0.02) more time than the base's.
    #: (Float) -> Integer
    def units_with(planted) = planted.zero? ? units : units + (units * planted / share).round

    # The share that a program takes more, as units are whole.
    #: (Float) -> Float
    def planted(wanted) = wanted.zero? ? 0.0 : (units_with(wanted) - units).fdiv(units) * share

    #: (String, ?Float) -> Pitwall::Bench::Subject
    def subject(side, planted = 0.0) = subject_of(side, units_with(planted))

    # What `pitwall compare` does where nobody says otherwise.
    #: (budget: Float, seed: Integer, **untyped) -> Pitwall::Experiment::Settings
    def self.settings(budget:, seed:, **more)
      Pitwall::Experiment::Settings.new(alpha: 0.01, margin: 0.01, budget: budget, seed: seed, timeout: 60, pin: true,
                                        control: false, check: false, allow_failure: false, in_turns: true, **more)
    end

    private

    # Which part of the time units take: all of it but for the start of a command.
    def share = @share ||= command? ? measured_share : 1.0

    def measured_share
      settings = Planted.settings(budget: 0, seed: 1)
      full, empty = [units, 0].map { |work| Pitwall::Experiment::Measurers.for(subject_of("share", work), settings) }
      pairs = Array.new(SHARE_PAIRS) do |block|
        [empty, full].map do |measurer|
          measurer.sample(measurer.cases.first, nil, block: block, order: 0)["wall"].first
        end
      end
      1 - Pitwall::Analyse::Statistics.median(pairs.map { |none, all| none.fdiv(all) })
    end

    def subject_of(side, work)
      Pitwall::Bench::Subject.new(
        name: side, ruby: [RbConfig.ruby], env: { "PLANTED_WORK" => work.to_s.rjust(units.to_s.size) }, dir: FOLDER,
        script: (file unless command?), command: (words if command?), requires: [], facts: {}
      )
    end

    CASES = [new("method_1ms", :Method1ms), new("command_150ms", :Command150ms, command: true),
             new("gc_5ms", :Gc5ms), new("objects_1ms", :Objects1ms)]
            .to_h { |planted| [planted.name, planted] }.freeze
  end
end

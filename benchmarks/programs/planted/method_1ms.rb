# frozen_string_literal: true

# A pure-Ruby method of about a millisecond, made of equal units: one unit in a hundred more is exactly one percent more
# work. What it allocates is nothing, what it returns depends on every unit.
#
#   ruby benchmarks/programs/planted/method_1ms.rb
#
# Runs under pitwall bench or compare. PLANTED_WORK sets the units; the default is UNITS.
module Planted
  class Method1ms
    UNITS = 10_000

    def initialize(units)
      @units = units
      @table = Array.new(64) { |index| (index * 2_654_435_761) & 0xffff }.freeze
    end

    #: () -> Integer
    def run
      value = 1
      unit = 0
      while unit < @units
        value = step(value, unit)
        unit += 1
      end
      value
    end

    private

    def step(value, unit) = ((value * 31) ^ @table[(value ^ unit) & 63]) & 0xffff_ffff
  end
end

if $PROGRAM_NAME == __FILE__
  work = Planted::Method1ms.new(Integer(ENV.fetch("PLANTED_WORK", Planted::Method1ms::UNITS)))
  Benchmark.ips { |x| x.report("method_1ms") { work.run } }
end

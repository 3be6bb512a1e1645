# frozen_string_literal: true

# A method that allocates one object a unit and works around it. Five units in a thousand more are half a percent more
# objects.
#
#   ruby benchmarks/programs/planted/objects_1ms.rb
#
# Runs under pitwall bench or compare. PLANTED_WORK sets the units; the default is UNITS.
module Planted
  class Objects1ms
    UNITS = 12_000

    def initialize(units)
      @units = units
    end

    #: () -> Integer
    def run
      sum = 0
      unit = 0
      while unit < @units
        sum ^= [unit, sum].first
        unit += 1
      end
      sum
    end
  end
end

if $PROGRAM_NAME == __FILE__
  work = Planted::Objects1ms.new(Integer(ENV.fetch("PLANTED_WORK", Planted::Objects1ms::UNITS)))
  Benchmark.ips { |x| x.report("objects_1ms") { work.run } }
end

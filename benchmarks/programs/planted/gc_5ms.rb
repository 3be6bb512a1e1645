# frozen_string_literal: true

# A method of about five milliseconds that makes records, of which the latest live on. Each unit makes one record of
# five objects and drops the one made LIVING units before. Some die young, some old, and much of the time is GC's.
# One unit in a hundred more is one percent more of everything: of the work, of the objects and, in the long run, of GC.
#
#   ruby benchmarks/programs/planted/gc_5ms.rb    # under pitwall bench or compare: PLANTED_WORK units, by default UNITS
module Planted
  class Gc5ms
    UNITS = 5000
    LIVING = 2000
    Record = Struct.new(:id, :name, :tags, :fields)
    private_constant :LIVING, :Record

    def initialize(units)
      @units = units
      @records = Array.new(LIVING)
      @made = 0
    end

    #: () -> Integer
    def run
      unit = 0
      while unit < @units
        keep(@made += 1)
        unit += 1
      end
      @records.size
    end

    private

    def keep(id)
      @records[id % LIVING] = Record.new(id, "record #{id}", [id, id + 1, id + 2, id + 3], { id: id, kind: :record })
    end
  end
end

if $PROGRAM_NAME == __FILE__
  work = Planted::Gc5ms.new(Integer(ENV.fetch("PLANTED_WORK", Planted::Gc5ms::UNITS)))
  Benchmark.ips { |x| x.report("gc_5ms") { work.run } }
end

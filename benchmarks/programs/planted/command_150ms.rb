# frozen_string_literal: true

# A whole command of about 150 ms: it starts Ruby and some of its standard library, then does equal units of work on
# text. The start cannot be made longer by a percent. So a planted difference has to allow for the start's share.
#
#   ruby benchmarks/programs/planted/command_150ms.rb    # PLANTED_WORK units, by default UNITS
require "json"
require "optparse"
require "set"
require "time"

module Planted
  class Command150ms
    UNITS = 4000
    TEXT = "the interval of a stack is a frame, weight for weight; the leaf of the tick ring drains the tree"
    private_constant :TEXT

    def initialize(units)
      @units = units
    end

    #: () -> Integer
    def run
      words = Hash.new(0)
      @units.times { |unit| unit(unit, words) }
      words.size
    end

    private

    def unit(number, words)
      TEXT.scan(/\w+/) { |word| words[word] += number }
      JSON.generate(words.first(4).to_h).size
    end
  end
end

if $PROGRAM_NAME == __FILE__
  units = Integer(ENV.fetch("PLANTED_WORK", Planted::Command150ms::UNITS))
  puts Planted::Command150ms.new(units).run
end

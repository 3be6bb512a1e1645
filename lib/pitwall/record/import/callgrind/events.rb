# frozen_string_literal: true

require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      class Callgrind < Format
        # What the costs of a file become, by the names of its events.
        # @api private
        class Events
          # Name of an event → weight, and how much of it 1 is. The first ones are Pitwall's, then those of ruby-prof.
          KNOWN = { "Wall_ns" => [:wall, 1], "CPU_ns" => [:cpu, 1], "Wait_ns" => [:wait, 1], "Calls" => [:calls, 1],
                    "Objects" => [:objects, 1], "Bytes" => [:bytes, 1], "Captures" => [:captures, 1],
                    "GC_ns" => [:gc, 1], "wall_time" => [:wall, 1000],
                    "process_time" => [:cpu, 1000], "cpu_time" => [:cpu, 1000],
                    "allocations" => [:objects, 1], "memory" => [:bytes, 1] }.freeze
          RUBY_PROF = %w[wall_time process_time cpu_time gc_time gc_runs allocations memory].freeze
          # Units in names, as of Xdebug's "Time_(10ns)" and "Memory_(bytes)".
          UNIT = /\A(?:time|memory)_?\((\d{0,6})(ns|µs|us|ms|s|bytes)\)\z/i.freeze
          SIZES = { "bytes" => 1, "ns" => 1, "µs" => 1000, "us" => 1000, "ms" => 1_000_000,
                    "s" => 1_000_000_000 }.freeze
          # The line of Pitwall's export that says whether calls were counted.
          COUNTED = "Calls: counted"
          private_constant :KNOWN, :RUBY_PROF, :UNIT, :SIZES, :COUNTED

          # @return [Array<String>] what was left out, in sentences
          attr_reader :warnings

          # @param names [Array<String>] of the file's events
          # @param type [String, nil] the one to take alone
          # @raise [Malformed] there is no such event, or none at all
          #: (Array[String], Hash[String, String], ?type: String?) -> void
          def initialize(names, headers, type: nil)
            @names = names
            @warnings = []
            raise Malformed, "has no line of events" if names.empty?
            raise Malformed, "has no event #{type}: it has #{names.join(", ").slice(0, 300)}" if
              type && !names.include?(type)

            @ruby_prof = headers["creator"].nil? && (names & RUBY_PROF).any?
            @counted = @ruby_prof || headers["desc"].to_s.split("\n").include?(COUNTED) ||
                       headers["creator"].to_s.start_with?("xdebug")
            @slots = names.map { |name| slot(name) if type.nil? || name == type }
            leave_out
            @chosen = @slots.each_index.select { |at| @slots[at] }
          end

          #: () -> bool
          def ruby_prof? = @ruby_prof

          # Number of costs that are taken.
          #: () -> Integer
          def size = @chosen.size

          # The costs that are taken, in the recording's units.
          #: (Array[Integer]) -> Array[Integer]
          def of(costs) = @chosen.map { |at| costs[at] * @slots[at].last }

          # Weight → value, with the calls where they were counted.
          #: (Array[Integer], Integer) -> Hash[Symbol, Integer]
          def weights(values, calls)
            found = @chosen.each_with_index.to_h { |at, number| [@slots[at].first, values[number]] }
            found = found.reject { |_, value| value.zero? }
            counts_calls? && calls.positive? ? found.merge(calls: calls) : found
          end

          # Whether the recording is one of exact calls.
          #: () -> bool
          def traced? = names.include?(:calls) || names.include?(:wait) || counts_calls?

          # Whether calls= are numbers of calls that belong into the recording. Pitwall's export of samples writes
          # something else, and an event "Calls" has them already. Only calls with times or objects have a place.
          #: () -> bool
          def counts_calls? = @counted && !names.include?(:calls) && !names.include?(:captures)

          #: () -> bool
          def sampled? = !traced? && names.intersect?(%i[captures wall cpu])

          # Keys of TRAC.
          #: () -> Hash[String, bool]
          def trace = %w[cpu objects bytes].to_h { |name| [name, names.include?(name.to_sym)] }

          # What the captures of the recording are.
          #: () -> Array[String]
          def notes
            at = @chosen.find { |number| @slots[number].first == :captures }
            at.nil? || @names[at] == "Captures" ? [] : ["captures are counts of #{@names[at].slice(0, 60)}"]
          end

          private

          def names = @chosen.map { |at| @slots[at].first }

          # What an event becomes: weight and factor.
          def slot(name)
            return KNOWN[name] if KNOWN.key?(name)

            match = UNIT.match(name) or return [:captures, 1]
            [match[2].casecmp?("bytes") ? :bytes : :wall, [match[1].to_i, 1].max * SIZES.fetch(match[2].downcase)]
          end

          # The first event of a weight is taken. Times that a trace has no place for go as well.
          def leave_out
            seen = {}
            traced = @slots.any? { |slot| slot && %i[calls wait].include?(slot.first) }
            @slots.each_with_index do |(weight, _), at|
              next if weight.nil?

              first = seen[weight] ||= at
              next if first == at && !(traced && %i[captures gc].include?(weight))

              @slots[at] = nil
              @warnings << if first == at then "the event #{@names[at]} was left out: a trace has no such figure"
                           else "the event #{@names[at]} was left out, as #{@names[first]} is of the same kind"
                           end
            end
          end
        end
        private_constant :Events
      end
    end
  end
end

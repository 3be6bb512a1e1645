# frozen_string_literal: true

require "pitwall/record/import/values"

module Pitwall
  module Record
    module Import
      class Callgrind < Format
        # Reads callgrind's text, line by line. Names may be abbreviated: "(3) sum" once, "(3)" afterwards. Files,
        # functions and objects have numbers of their own. Positions may be relative: +2, -1, * for the same.
        # @api private
        class ProfileText
          include Values

          HEADER = /\A(version|creator|pid|cmd|part|thread|desc|positions|events?|summary|totals):[ \t]*(.*)\z/.freeze
          POSITION = /\A(c?)(fn|fl|fi|fe|ob)=(?:\((\d+)\))?[ \t]*(.*)\z/.freeze
          CALLS = /\Acalls=[ \t]*(\d+)/.freeze
          JUMP = /\A(?:jump|jcnd)=/.freeze
          NUMBER = /\A(?:\d+|0x\h+|[+-](?:\d+|0x\h+)|\*)\z/.freeze
          # Names that a file may have, and sums of lines and calls.
          NAMES = 2_000_000
          SUMS = 5_000_000
          EVENTS = 100
          # Which numbering an abbreviation belongs to.
          SPACES = { "fn" => :function, "fl" => :file, "fi" => :file, "fe" => :file, "ob" => :object }.freeze
          private_constant :HEADER, :POSITION, :CALLS, :JUMP, :NUMBER, :NAMES, :SUMS, :EVENTS, :SPACES

          # @return [Hash{String => String}] the first of each line before the costs; "desc" has all, joined
          attr_reader :headers
          # @return [Array<String>] names of the costs
          attr_reader :events
          # @return [Array<[String, String, String]>] name, file and object of each function
          attr_reader :functions
          # @return [Hash] number of a function and line → costs
          attr_reader :costs
          # @return [Hash] numbers of caller and callee → line, number of calls, inclusive costs
          attr_reader :calls

          #: (Source) -> void
          def initialize(source)
            @source = source
            @headers = {}
            @events = []
            @functions = []
            @costs = {}
            @calls = {}
            @numbers = {}
            @names = { function: {}, file: {}, object: {} }
            @positions = ["line"]
            @last = []
            @file = @object = ""
            @callee = {}
            @waiting = nil # a number of calls whose costs are in the next line, or :jump
          end

          # @raise [Malformed]
          #: () -> void
          def read
            @source.each_line { |line| take(line) }
            raise Malformed, "is cut off: the last line begins a call" if @waiting.is_a?(Integer)
            raise Malformed, "has no costs" if @costs.empty? && @calls.empty?
          end

          private

          def take(line)
            return if line.empty? || line.start_with?("#")

            first = line.getbyte(0)
            return cost(line) if first < 58 && first != 32 # digits, + - *

            case line
            when POSITION then position(Regexp.last_match)
            when CALLS then @waiting = calls_of(Regexp.last_match[1])
            when JUMP then @waiting = :jump
            when HEADER then header(*Regexp.last_match.captures)
            else unknown(line)
            end
          end

          def unknown(line)
            return if line.strip.empty? || line.match?(/\A(?:rcalls=|[a-z]+:|frfn=)/)
            return cost(line.strip) if line.match?(/\A +[\d+*-]/)

            raise Malformed, "is damaged: #{line.strip.slice(0, 40).inspect} is no line of the format"
          end

          def calls_of(text)
            raise Malformed, "is damaged: calls= is in no function" unless @function

            text.size > 18 ? wrong("a number of calls", "an amount from 0 to 2**60", text) : text.to_i
          end

          def header(name, text)
            case name
            when "events" then events_of(text.split)
            when "positions" then @positions = text.split.first(3)
            when "desc" then @headers["desc"] = [@headers["desc"], text].compact.join("\n").slice(0, 10_000)
            else @headers[name] ||= text
            end
          end

          def events_of(names)
            raise Malformed, "has more than #{EVENTS} events" if names.size > EVENTS
            raise Malformed, "is damaged: its parts have different events" unless @events.empty? || @events == names

            @events = names
          end

          # "fn=(3) sum", "cfi=(2)"
          def position(match)
            callee, type, number, text = match.captures
            name = name(SPACES.fetch(type), number, text.strip)
            return @callee[SPACES.fetch(type)] = name unless callee.empty?

            case type
            when "ob" then @object = name
            when "fl" then @file = @function_file = name
            when "fi", "fe" then @file = name # lines of another file, in the same function
            else @function = number(name, @function_file || @file, @object)
            end
          end

          def name(space, number, text)
            return text if number.nil?

            known = @names.fetch(space)
            return known[number] || raise(Malformed, "is damaged: (#{number}) is no #{space} yet") if text.empty?

            raise Malformed, "has more than #{NAMES} names" if known.size >= NAMES
            known[number] = text
          end

          def number(name, file, object)
            @numbers[[name, file, object]] ||= begin
              @functions << [name, file, object]
              @functions.size - 1
            end
          end

          def cost(line)
            raise Malformed, "is damaged: costs are in no function" unless @function
            raise Malformed, "is damaged: there are costs before the line of events" if @events.empty?

            words = line.split
            at = place(words.shift(@positions.size))
            waiting, @waiting = @waiting, nil
            return if waiting == :jump

            values = values(words)
            waiting ? add_call(at, waiting, values) : add(@costs, [@function, at], values)
          end

          # The line of a cost. Positions are relative to those of the line before.
          def place(words)
            words.each_with_index do |word, at|
              raise Malformed, "is damaged: a position is #{word.slice(0, 40).inspect}" unless word.match?(NUMBER)

              @last[at] = word == "*" ? @last[at].to_i : moved(word, @last[at].to_i)
            end
            line(@last[@positions.index("line") || 0])
          end

          def moved(word, last)
            raise Malformed, "is damaged: a position is #{word.slice(0, 40)}" if word.size > 20
            return last + Integer(word, word.include?("x") ? 16 : 10) if word.start_with?("+", "-")

            Integer(word, word.start_with?("0x") ? 16 : 10)
          end

          # Costs that the line does not have are 0.
          def values(words)
            if words.size > @events.size
              raise Malformed, "is damaged: a line has #{words.size} costs for #{@events.size} events"
            end

            Array.new(@events.size) { |at| at < words.size ? value(words[at]) : 0 }
          end

          def value(word)
            raise Malformed, "has a negative cost (#{word.slice(0, 40)}), as differences have: import both sides" if
              word.match?(/\A-\d/)
            return word.to_i if word.match?(/\A\d{1,18}\z/)
            return Integer(word, 16) if word.match?(/\A0x\h{1,14}\z/)

            wrong("a cost", "an amount from 0 to 2**60", word)
          end

          def add(sums, key, values)
            sum = sums[key]
            return values.each_with_index { |value, at| sum[at] += value } if sum

            raise Malformed, "has more than #{SUMS} lines with costs" if sums.size >= SUMS
            sums[key] = values
          end

          # The callee's file and object are the caller's where they are not given.
          def add_call(line, count, values)
            raise Malformed, "is damaged: calls= names no function" unless @callee[:function]

            callee = number(@callee[:function], @callee[:file] || @file, @callee[:object] || @object)
            @callee = {}
            found = @calls[[@function, callee]]
            return @calls[[@function, callee]] = [line, count, values] unless found

            found[1] += count
            values.each_with_index { |value, at| found[2][at] += value }
          end
        end
        private_constant :ProfileText
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/analyse/syscalls/contents"
require "pitwall/analyse/syscalls/repeat"
require "pitwall/analyse/syscalls/run"
require "pitwall/analyse/syscalls/scan"
require "pitwall/analyse/syscalls/sequence"
require "pitwall/analyse/syscalls/walk"

module Pitwall
  module Analyse
    module Syscalls
      # One entry of the pattern table: what calls it absorbs, what they are, and what to do about them. Shipped ones and a user's are
      # written in the same keys, which doc/syscalls.md lists.
      class Pattern
        KEYS = %w[name match calls then path paths rule same fails bytes least except label counted explanation advice keeps at_most once before study].freeze
        MATCHES = %w[sequence walk scan contents run repeat].freeze
        RULES = %w[ends name stem].freeze
        SAME = %w[path folder name anything].freeze
        STEP = /\A([a-z0-9_$|]+)([+*?])?(!)?(?::([a-z]))?\z/.freeze
        HOW_OFTEN = { nil => [1, 1], "?" => [0, 1], "+" => [1, Float::INFINITY], "*" => [0, Float::INFINITY] }.freeze
        # Steps in a sequence, letters in an expression, letters in a text.
        STEPS = 64
        EXPRESSION = 1000
        TEXT = 1000
        private_constant :KEYS, :MATCHES, :RULES, :SAME, :STEP, :HOW_OFTEN, :STEPS, :EXPRESSION, :TEXT

        # name: "%LOAD" · explanation, advice: a sentence each; advice may be nil · keeps: calls of a marker that a fix leaves · steps: of a sequence
        # paths: { "a" => Regexp } · least: calls or repeats that make a marker · before: the pattern it goes before, or nil
        attr_reader :name, :explanation, :advice, :keeps, :steps, :paths, :rule, :same, :fails, :bytes, :least, :except, :label_of, :before

        # @param entry [Hash{String => Object}]
        # @param source [String] whose it is, for messages
        # @raise [UsageError] a key there isn't, a value it can't take
        #: (Hash[String, untyped], ?source: String) -> void
        def initialize(entry, source: "the pattern table")
          @source = source
          raise UsageError, "#{source}: a pattern is a table of #{KEYS.first(4).join(", ")}…, not #{entry.class.name.downcase}" unless entry.is_a?(Hash)

          @entry = entry
          @name = text("name", required: true)
          refuse("a name is % and two to twelve capitals, such as %TMPL") unless @name.match?(/\A%[A-Z0-9_]{2,12}\z/)
          unknown = entry.keys - KEYS
          refuse("unknown key #{unknown.first}; there are #{KEYS.join(", ")}") if unknown.any?
          read
        end

        # Whether a fix saves that much only if all of it can go: nobody knows how much the program needs.
        #: () -> bool
        def at_most? = @entry["at_most"] == true

        # Whether a fix leaves what is done first with each path.
        #: () -> bool
        def once? = @entry["once"] == true

        # Made by the study, so also looked for in logs of its form.
        #: () -> bool
        def study? = @entry["study"] == true

        # Whether its markers count as explained: it takes two calls, and says what to do.
        #: () -> bool
        def explains? = !@advice.nil?

        # Whether its marker says how many calls it was, as the study's does.
        #: () -> bool
        def counted? = @entry["counted"] == true

        # Whether its labels are paths, which can be grouped by folder.
        #: () -> bool
        def of_paths? = @of_paths

        #: () -> Program
        def program
          case @match
          when "sequence" then Program.new(self, @steps.map(&:words), exact? ? ExactSequence : Sequence, first: 0..leading)
          when "walk" then Program.new(self, [@words, @then], Walk)
          when "scan" then Program.new(self, [@words], Scan)
          when "contents" then Program.new(self, [@words], Contents)
          when "run" then Program.new(self, [@words], Run)
          else Program.new(self, [@words], Repeat)
          end
        end

        # What its marker says of a path: the path, or its name.
        #: (String) -> String
        def label(path) = @of_paths ? path : @match == "scan" || @same == "name" ? Scan.name(path) : path

        # Whether a marker of one call takes two all the same: the first one stood before.
        #: () -> bool
        def repeats? = @match == "repeat"

        # How its calls are found, in a few words: "stat lstat on one path".
        #: () -> String
        def how
          case @match
          when "sequence" then "#{@entry["calls"]}#{" on one path" if @steps.map(&:variable).uniq.size == 1}"
          when "walk" then "#{words} down a path, a component at a time#{", then #{@then.join(", ")} of it" if @then.any?}"
          when "scan" then "#{@least} or more #{words} of one #{@rule == "stem" ? "name (any extension)" : "name"} in different folders"
          when "contents" then "#{@least} or more #{words} of relative paths, from a name without a slash on"
          when "run" then "#{@least} or more #{"failing " if @fails}#{words}#{" of at most #{@bytes} bytes" if @bytes} in a row#{@same == "anything" ? "" : ", same #{@same}"}"
          else "#{words} again, same path#{", failing" if @fails}"
          end
        end

        private

        def read
          @match = choice("match", MATCHES, required: true)
          @explanation = text("explanation", required: true)
          @advice = text("advice")
          @keeps = number("keeps", 0..1000) || 0
          @before = text("before")
          @rule = choice("rule", RULES) || "name"
          @same = choice("same", SAME) || "path"
          @fails = @entry["fails"] == true
          @bytes = number("bytes", 0..(1 << 40))
          @least = number("least", 2..1_000_000) || 2
          @except = list("except")
          @then = @entry["then"] ? checked(words_of("then")) : []
          @label_of = text("label") || (@match == "scan" ? "name" : "a")
          @paths = expressions
          @match == "sequence" ? read_steps : read_words
          @of_paths = @match == "scan" ? @label_of == "path" : !(@match == "contents" || (@match == "run" && @same == "name"))
        end

        def read_steps
          texts = words_of("calls")
          refuse("a sequence has from 2 to #{STEPS} calls") unless texts.size.between?(2, STEPS)

          @steps = texts.map do |text|
            found = STEP.match(text) or refuse("cannot read the call `#{text}`: write open, stat|lstat, read+, fstat?, close:b, open!")
            Sequence::Step.new(checked(found[1].split("|")), *HOW_OFTEN.fetch(found[2]), found[4] || "a", !found[3].nil?)
          end
          refuse("one of its calls must occur: not all can have ? or *") if leading == @steps.size
        end

        def read_words = @words = checked(words_of("calls").flat_map { |word| word.split("|") })

        def words_of(key)
          value = @entry[key]
          value = value.split if value.is_a?(String)
          refuse("#{key} is missing: names of calls with blanks between") unless value.is_a?(Array) && value.any? && value.all?(String)
          value
        end

        def checked(words)
          wrong = words.find { |word| !Kinds.word?(word) }
          refuse("`#{wrong}` is no call's name") if wrong || words.empty?
          words
        end

        # Nothing but each call once, on one path.
        def exact? = @paths.empty? && @steps.all? { |step| step.least == 1 && step.most == 1 && !step.fails && step.variable == "a" } && @label_of == "a"

        # Steps at the beginning that may be left out.
        def leading = @steps.index { |step| step.least.positive? } || @steps.size

        def words = @words.join(", ")

        def expressions
          found = @entry["paths"] || {}
          refuse("paths is a table: { a: 'expression' }") unless found.is_a?(Hash) && found.all? { |key, value| key.to_s.match?(/\A[a-z]\z/) && value.is_a?(String) }
          found = found.transform_keys(&:to_s)
          found = { "a" => text("path") }.merge(found) if @entry["path"]
          found.transform_values { |text| expression(text) }
        end

        # Paths are bytes.
        def expression(text)
          refuse("an expression has at most #{EXPRESSION} letters") if text.size > EXPRESSION
          text.ascii_only? ? Regexp.new(text) : Regexp.new(text.b, Regexp::NOENCODING)
        rescue RegexpError => error
          refuse("cannot read the expression #{text}: #{error.message.sub(%r{: /.*/.*\z}m, "")}")
        end

        def text(key, required: false)
          value = @entry[key]
          refuse("#{key} is missing") if value.nil? && required
          refuse("#{key} is a text of at most #{TEXT} letters") unless value.nil? || (value.is_a?(String) && !value.strip.empty? && value.size <= TEXT)
          value
        end

        def choice(key, among, required: false)
          value = text(key, required: required)
          refuse("#{key} #{value}: it takes #{among.join(", ")}") unless value.nil? || among.include?(value)
          value
        end

        def number(key, range)
          value = @entry[key]
          refuse("#{key} is a number from #{range.min} to #{range.max}") unless value.nil? || (value.is_a?(Integer) && range.cover?(value))
          value
        end

        def list(key)
          value = @entry[key] || []
          refuse("#{key} is a list of names") unless value.is_a?(Array) && value.all?(String)
          value.map(&:b)
        end

        def refuse(text) = raise(UsageError, "#{@source}: #{"#{@name}: " if @name}#{text}")
      end
    end
  end
end

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
      # One entry of the pattern table: the calls that it absorbs, an explanation and advice.
      # Pitwall's entries and a user's have the same keys, which doc/syscalls.md lists.
      class Pattern
        KEYS = %w[name match calls then path paths rule same fails bytes least except label counted explanation advice
                  keeps at_most once before study].freeze
        MATCHES = %w[sequence walk scan contents run repeat].freeze
        RULES = %w[ends name stem].freeze
        SAME = %w[path folder name anything].freeze
        STEP = /\A([a-z0-9_$|]+)([+*?])?(!)?(?::([a-z]))?\z/.freeze
        # Quantifier of a step → least and most repetitions.
        QUANTIFIERS = { nil => [1, 1], "?" => [0, 1], "+" => [1, Float::INFINITY], "*" => [0, Float::INFINITY] }.freeze
        # Most steps of a sequence, most characters of an expression and of a text.
        STEPS = 64
        EXPRESSION = 1000
        TEXT = 1000
        private_constant :KEYS, :MATCHES, :RULES, :SAME, :STEP, :QUANTIFIERS, :STEPS, :EXPRESSION, :TEXT

        # name:   "%LOAD"
        # explanation, advice: one sentence each; advice may be nil
        # keeps:  calls of a marker that remain after a fix
        # steps:  of a sequence
        # paths:  { "a" => Regexp }
        # least:  fewest calls of a marker
        # before: name of the pattern that this pattern precedes, or nil
        attr_reader :name, :explanation, :advice, :keeps, :steps, :paths, :rule, :same, :fails, :bytes, :least, :except,
                    :label_of, :before

        # @param entry [Hash{String => Object}]
        # @param source [String] file of the entry, for messages
        # @raise [UsageError] for an unknown key or an invalid value
        #: (Hash[String, untyped], ?source: String) -> void
        def initialize(entry, source: "the pattern table")
          @source = source
          unless entry.is_a?(Hash)
            keys = KEYS.first(4).join(", ")
            raise UsageError, "#{source}: a pattern is a table of #{keys}…, not #{entry.class.name.downcase}"
          end

          @entry = entry
          @name = text("name", required: true)
          refuse("a name is % and two to twelve capitals, such as %TMPL") unless @name.match?(/\A%[A-Z0-9_]{2,12}\z/)
          unknown = entry.keys - KEYS
          refuse("unknown key #{unknown.first}; there are #{KEYS.join(", ")}") if unknown.any?
          read
        end

        # Whether the saving is an upper bound, because the program may need some of the calls.
        #: () -> bool
        def at_most? = @entry["at_most"] == true

        # Whether a fix keeps the first marker of each path.
        #: () -> bool
        def once? = @entry["once"] == true

        # Whether it is a pattern of the study. Logs in the study's format are read with these patterns.
        #: () -> bool
        def study? = @entry["study"] == true

        # Whether its calls count as explained: it has advice.
        #: () -> bool
        def explains? = !@advice.nil?

        # Whether its marker has the number of calls in a collapsed log, as in the study.
        #: () -> bool
        def counted? = @entry["counted"] == true

        # Whether its labels are paths, which can be grouped by folder.
        #: () -> bool
        def of_paths? = @of_paths

        # The pattern compiled for matching.
        #: () -> Program
        def program
          case @match
          when "sequence"
            Program.new(self, @steps.map(&:words), exact? ? ExactSequence : Sequence, first: 0..leading)
          when "walk" then Program.new(self, [@words, @then], Walk)
          when "scan" then Program.new(self, [@words], Scan)
          when "contents" then Program.new(self, [@words], Contents)
          when "run" then Program.new(self, [@words], Run)
          else Program.new(self, [@words], Repeat)
          end
        end

        # Label of a path in a marker: the path, or its last component.
        #: (String) -> String
        def label(path) = @of_paths ? path : @match == "scan" || @same == "name" ? Scan.name(path) : path

        # Whether its markers count repetitions only. A marker of one call then means two calls.
        #: () -> bool
        def repeats? = @match == "repeat"

        # How calls match, in a few words: "stat lstat on one path".
        #: () -> String
        def how
          case @match
          when "sequence" then "#{@entry["calls"]}#{" on one path" if @steps.map(&:variable).uniq.size == 1}"
          when "walk"
            "#{words} down a path, a component at a time#{", then #{@then.join(", ")} of it" if @then.any?}"
          when "scan"
            name = @rule == "stem" ? "name (any extension)" : "name"
            "#{@least} or more #{words} of one #{name} in different folders"
          when "contents" then "#{@least} or more #{words} of relative paths, from a name without a slash on"
          when "run"
            bytes = " of at most #{@bytes} bytes" if @bytes
            same = ", same #{@same}" unless @same == "anything"
            "#{@least} or more #{"failing " if @fails}#{words}#{bytes} in a row#{same}"
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
          names_only = @match == "contents" || (@match == "run" && @same == "name")
          @of_paths = @match == "scan" ? @label_of == "path" : !names_only
        end

        def read_steps
          texts = words_of("calls")
          refuse("a sequence has from 2 to #{STEPS} calls") unless texts.size.between?(2, STEPS)

          @steps = texts.map do |text|
            found = STEP.match(text)
            refuse("cannot read the call `#{text}`: write open, stat|lstat, read+, fstat?, close:b, open!") unless found
            Sequence::Step.new(checked(found[1].split("|")), *QUANTIFIERS.fetch(found[2]), found[4] || "a",
                               !found[3].nil?)
          end
          refuse("one of its calls must occur: not all can have ? or *") if leading == @steps.size
        end

        def read_words = @words = checked(words_of("calls").flat_map { |word| word.split("|") })

        def words_of(key)
          value = @entry[key]
          value = value.split if value.is_a?(String)
          valid = value.is_a?(Array) && value.any? && value.all?(String)
          refuse("#{key} is missing: names of calls with blanks between") unless valid
          value
        end

        def checked(words)
          wrong = words.find { |word| !Kinds.word?(word) }
          refuse("`#{wrong}` is no call's name") if wrong || words.empty?
          words
        end

        # Whether each step matches exactly once, and all on one path.
        def exact?
          @paths.empty? && @label_of == "a" &&
            @steps.all? { |step| step.least == 1 && step.most == 1 && !step.fails && step.variable == "a" }
        end

        # Number of optional steps at the beginning.
        def leading = @steps.index { |step| step.least.positive? } || @steps.size

        def words = @words.join(", ")

        def expressions
          found = @entry["paths"] || {}
          valid = found.is_a?(Hash) && found.all? { |key, value| key.to_s.match?(/\A[a-z]\z/) && value.is_a?(String) }
          refuse("paths is a table: { a: 'expression' }") unless valid
          found = found.transform_keys(&:to_s)
          found = { "a" => text("path") }.merge(found) if @entry["path"]
          found.transform_values { |text| expression(text) }
        end

        # An expression for paths, which may be any bytes.
        def expression(text)
          refuse("an expression has at most #{EXPRESSION} letters") if text.size > EXPRESSION
          text.ascii_only? ? Regexp.new(text) : Regexp.new(text.b, Regexp::NOENCODING)
        rescue RegexpError => error
          refuse("cannot read the expression #{text}: #{error.message.sub(%r{: /.*/.*\z}m, "")}")
        end

        def text(key, required: false)
          value = @entry[key]
          refuse("#{key} is missing") if value.nil? && required
          valid = value.nil? || (value.is_a?(String) && !value.strip.empty? && value.size <= TEXT)
          refuse("#{key} is a text of at most #{TEXT} letters") unless valid
          value
        end

        def choice(key, among, required: false)
          value = text(key, required: required)
          refuse("#{key} #{value}: it takes #{among.join(", ")}") unless value.nil? || among.include?(value)
          value
        end

        def number(key, range)
          value = @entry[key]
          valid = value.nil? || (value.is_a?(Integer) && range.cover?(value))
          refuse("#{key} is a number from #{range.min} to #{range.max}") unless valid
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

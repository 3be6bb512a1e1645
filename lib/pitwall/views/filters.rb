# frozen_string_literal: true

require "shellwords"
require "pitwall/analyse"
require "pitwall/duration"
require "pitwall/errors"

module Pitwall
  module Views
    # The options --time, --focus, --hide and --only: their parser, what they become, and which views refuse them.
    module Filters
      # Keys of the options.
      KEYS = %i[time focus hide only].freeze
      NAMES = [*KEYS, :blackbox].to_h { |key| [key, "--#{key}"] }.freeze
      MINUTE = 60_000_000_000
      LONGEST = 365 * 86_400 * 1_000_000_000
      # Weights that have no time in a recording.
      UNTIMED = %w[calls wait objects bytes gc].freeze
      private_constant :NAMES, :MINUTE, :LONGEST, :UNTIMED

      module_function

      # "2s..5s", "2s..", "..500ms" → the range
      # @raise [UsageError]
      #: (String) -> Analyse::TimeRange
      def time(text)
        from, to = text.match(/\A(.*?)\.\.(.*)\z/m)&.captures
        if from.nil? || (from.empty? && to.empty?)
          raise UsageError, "--time #{text}: write it as FROM..TO, e.g. 2s..5s, 500ms.. or ..1m"
        end

        from, to = [from, to].map { |moment| moment.empty? ? nil : moment(moment) }
        raise UsageError, "--time #{text}: ends before it begins" if to && to <= from.to_i

        Analyse::TimeRange.new(from || 0, to, text: text)
      end

      # @param options [Hash] as the parser gives them
      #: (Hash[Symbol, untyped], Analyse::Origin) -> Analyse::Filters
      def of(options, origin)
        Analyse::Filters.new(time: options[:time], focus: options.fetch(:focus, []), hide: options.fetch(:hide, []),
                             only: only(options), blackbox: options.fetch(:blackbox, []), origin: origin,
                             names: NAMES)
      end

      # Whose frames are kept; nil: everyone's. The application's alone are a matter of --only-mine.
      #: (Hash[Symbol, untyped]) -> String?
      def only(options) = options[:only] == "app" ? nil : options[:only]

      # Are the application's frames asked for, and no others?
      #: (Hash[Symbol, untyped]) -> bool
      def only_mine?(options) = options.fetch(:only_mine, false) || options[:only] == "app"

      # A filter that changes nothing would be believed to have changed something.
      # @param refused [Array<Symbol>] keys that the view does not take
      # @raise [UsageError]
      #: (Hash[Symbol, untyped], String, Array[Symbol]) -> void
      def check(options, what, refused)
        key = refused.find { |one| given?(options, one) } or return

        why = key == :time ? "has no times" : "has no stacks"
        raise UsageError, "--#{key}: the view of #{what} #{why}: leave it out, or ask for another --view"
      end

      # @raise [UsageError] the weight has no time
      #: (Hash[Symbol, untyped], (Symbol | String)?) -> void
      def check_weight(options, weight)
        return unless options[:time] && UNTIMED.include?(weight.to_s)

        raise UsageError, "--time: #{weight} are sums without times: leave it out, or take --weight wall, cpu or " \
                          "captures"
      end

      # As one would type them again: " --time 2s..5s --hide Foo", or "".
      #: (Hash[Symbol, untyped]) -> String
      def typed(options)
        words = KEYS.flat_map { |key| texts(options, key).flat_map { |text| ["--#{key}", text] } }
        words.map { |word| " #{word.match?(/\A[\w.:@#-]+\z/) ? word : Shellwords.escape(word)}" }.join
      end

      # Checks the filters that a page begins with. It has native frames, and folds them unless they are asked for.
      # @raise [UsageError] the recording has no such time, name or origin
      #: (Hash[Symbol, untyped], Array[Record::Segment], Analyse::Origin) -> void
      def check_page(options, segments, origin)
        segments = Analyse::NativeFrames.fold(segments) unless options[:native] || options[:only] == "native"
        of(options, origin).check(segments)
        folded = { hide: options.fetch(:blackbox, []), names: { hide: "--blackbox" } }
        Analyse::Filters.new(**folded, origin: origin).check(segments)
      end

      # What the page begins with, in the words of its address.
      #: (Hash[Symbol, untyped]) -> Hash[String, untyped]
      def start(options)
        { "time" => options[:time]&.to_s, "focus" => names(options[:focus]), "hide" => names(options[:hide]),
          "only" => options[:only] || ("app" if options[:only_mine]), "blackbox" => names(options[:blackbox]),
          "native" => ("1" if options[:native]) }.compact
      end

      def given?(options, key) = options[key] && !(key == :only && options[:only] == "app")

      def texts(options, key) = [*options[key]].map(&:to_s)

      # Names of the page, which knows no saved sets.
      def names(list) = list&.flat_map { |name| name.respond_to?(:names) ? name.names : name }

      # @raise [UsageError]
      def moment(text)
        minutes = text[/\A(\d+(?:\.\d+)?)m\z/, 1]
        return (Rational(minutes) * MINUTE).round if minutes

        Duration.parse(text, name: "--time", range: 0..LONGEST)
      end
      private_class_method :given?, :texts, :names, :moment
    end
  end
end

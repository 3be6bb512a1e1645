# frozen_string_literal: true

require "pitwall/analyse/syscalls/pattern"
require "pitwall/analyse/syscalls/table"
require "pitwall/record/syscall"

module Pitwall
  module Analyse
    # The patterns of a report: Pitwall's own and a user's, in the order of the passes.
    class SyscallPatterns
      include Enumerable

      # Most patterns of a user. Each stage is a bit of an Integer.
      MOST = 30
      private_constant :MOST

      # @param user [Array<Hash>, nil] entries with the keys of Syscalls::TABLE; the last ones unless they have `before`
      # @param source [String] file of the user's entries, for messages
      # @param study [Boolean] true: only the study's patterns and the user's
      # @param only [Array<String>, nil] names of the patterns to use; nil: all
      # @raise [UsageError] for an invalid entry, a duplicate name or an unknown name
      #: (?user: Array[Hash[String, untyped]]?, ?source: String, ?study: bool, ?only: Array[String]?) -> void
      def initialize(user: nil, source: ".pitwall.yml", study: false, only: nil)
        unless user.nil? || (user.is_a?(Array) && user.size <= MOST)
          raise UsageError, "#{source}: syscalls: patterns: is a list, at most #{MOST} long"
        end

        own = Syscalls::TABLE.map { |entry| Syscalls::Pattern.new(entry) }
        own.select!(&:study?) if study
        @patterns = own
        user.to_a.each { |entry| insert(Syscalls::Pattern.new(entry, source: source), source) }
        choose(only) if only
      end

      # Yields each pattern, in the order of the passes.
      #: () { (Syscalls::Pattern) -> void } -> void
      def each(&block) = @patterns.each(&block)

      # Names of the patterns: "%LOAD"…
      #: () -> Array[String]
      def names = map(&:name)

      # Whether all patterns work without results and flags of calls, which logs in the study's format do not have.
      #: () -> bool
      def study_only? = all?(&:study?)

      # Whether a log can be split at a call of this name, because no match contains such a call.
      # Always false if a pattern looks at the whole log.
      #: (String) -> bool
      def separator?(name)
        @separators ||= Hash.new do |known, call|
          programs = map(&:program)
          kinds = Syscalls::Kinds.new(programs)
          kind = kinds.of(Record::Syscall.new(name: call))
          matched = programs.any? { |program| program.accepts.any? { |accepted| accepted[kind] } }
          known[call] = none?(&:repeats?) && !matched
        end
        @separators.size > 1000 ? false : @separators[name]
      end

      private

      def insert(pattern, source)
        if names.include?(pattern.name)
          raise UsageError, "#{source}: #{pattern.name}: there is a pattern of this name already"
        end
        return @patterns << pattern unless pattern.before

        at = names.index(pattern.before)
        # Only the study's patterns may be in use. The position is then before the next pattern in use.
        at ||= following(pattern.before)
        unless at
          raise UsageError, "#{source}: #{pattern.name}: before #{pattern.before}: there is no such pattern"
        end
        @patterns.insert(at, pattern)
      end

      # Index of the first pattern in use that follows this one in the table; nil if the table has no such name.
      def following(name)
        table = Syscalls::TABLE.map { |entry| entry["name"] }
        from = table.index(name) or return nil
        table.drop(from).filter_map { |other| names.index(other) }.first || @patterns.size
      end

      def choose(only)
        chosen = only.map { |name| "%#{name.delete_prefix("%").upcase}" }
        wrong = chosen - names
        if wrong.any?
          raise UsageError, "--patterns #{only.join(",")}: no pattern #{wrong.first}; " \
                            "there are #{names.join(", ")}, or study, or all"
        end

        @patterns.select! { |pattern| chosen.include?(pattern.name) }
      end
    end
  end
end

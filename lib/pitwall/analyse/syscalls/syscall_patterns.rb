# frozen_string_literal: true

require "pitwall/analyse/syscalls/pattern"
require "pitwall/analyse/syscalls/table"
require "pitwall/record/syscall"

module Pitwall
  module Analyse
    # The pattern table in force: Pitwall's own, in the order of its passes, with a user's beside them.
    class SyscallPatterns
      include Enumerable

      # A user's patterns at most: each stage is a bit.
      MOST = 30
      private_constant :MOST

      # @param user [Array<Hash>, nil] entries in the keys of Syscalls::TABLE; `before` says where, else they come last
      # @param source [String] whose they are, for messages
      # @param study [Boolean] only the study's seven, and the user's
      # @param only [Array<String>, nil] names of those wanted
      # @raise [UsageError] an entry that can't be read, a name there is already
      #: (?user: Array[Hash[String, untyped]]?, ?source: String, ?study: bool, ?only: Array[String]?) -> void
      def initialize(user: nil, source: ".pitwall.yml", study: false, only: nil)
        raise UsageError, "#{source}: syscalls: patterns: is a list, at most #{MOST} long" unless user.nil? || (user.is_a?(Array) && user.size <= MOST)

        own = Syscalls::TABLE.map { |entry| Syscalls::Pattern.new(entry) }
        own.select!(&:study?) if study
        @patterns = own
        user.to_a.each { |entry| insert(Syscalls::Pattern.new(entry, source: source), source) }
        choose(only) if only
      end

      #: () { (Syscalls::Pattern) -> void } -> void
      def each(&block) = @patterns.each(&block)

      #: () -> Array[String]
      def names = map(&:name)

      # Whether results and flags of calls are looked at, which a log in the study's form doesn't have.
      #: () -> bool
      def study_only? = all?(&:study?)

      # Whether no match can hold such a call, so that what comes before it and after it can be looked at apart. None is where a pattern looks
      # at the whole log.
      #: (String) -> bool
      def apart?(name)
        @apart ||= Hash.new do |known, call|
          programs = map(&:program)
          kinds = Syscalls::Kinds.new(programs)
          kind = kinds.of(Record::Syscall.new(name: call))
          known[call] = none?(&:repeats?) && programs.none? { |program| program.accepts.any? { |kinds_of_step| kinds_of_step[kind] } }
        end
        @apart.size > 1000 ? false : @apart[name]
      end

      private

      def insert(pattern, source)
        raise UsageError, "#{source}: #{pattern.name}: there is a pattern of this name already" if names.include?(pattern.name)
        return @patterns << pattern unless pattern.before

        at = names.index(pattern.before)
        # A log in the study's form is read without today's patterns; what goes before one of them goes before what follows it.
        at ||= following(pattern.before) || raise(UsageError, "#{source}: #{pattern.name}: before #{pattern.before}: there is no such pattern")
        @patterns.insert(at, pattern)
      end

      def following(name)
        table = Syscalls::TABLE.map { |entry| entry["name"] }
        from = table.index(name) or return nil
        table.drop(from).filter_map { |other| names.index(other) }.first || @patterns.size
      end

      def choose(only)
        chosen = only.map { |name| "%#{name.delete_prefix("%").upcase}" }
        wrong = chosen - names
        raise UsageError, "--patterns #{only.join(",")}: no pattern #{wrong.first}; there are #{names.join(", ")}, or study, or all" if wrong.any?

        @patterns.select! { |pattern| chosen.include?(pattern.name) }
      end
    end
  end
end

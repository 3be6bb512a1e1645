# frozen_string_literal: true

require_relative "../errors" unless defined?(Pitwall::Error)
# A recorded process has Pitwall::Collect, without the block form.
require_relative "../../pitwall" unless Pitwall.respond_to?(:caches)

module Pitwall
  # Finds the changes in a block that empty caches of the VM ({Pitwall.caches}). `assert_no_invalidations` of
  # `pitwall/minitest` and `invalidate_caches` of `pitwall/rspec` use it. Recording needs pitwall-core only; reading the
  # recording needs the gem pitwall.
  module Invalidations
    WARMUP = 1
    # Number of changes in a message.
    TOP = 5
    private_constant :WARMUP, :TOP

    # Changes that a test allows, by their kind or their subject.
    class Allowed
      # @param entries [Symbol, String, Regexp, Array] :class_made: a kind. :classes_made: a counter of Pitwall's, with
      #   all its kinds. "Shop::Cart#*": a subject, in which * stands for any characters. A Regexp matches subjects
      # @raise [UsageError] an entry that is none of these
      #: (untyped) -> void
      def initialize(entries)
        @kinds, patterns = Array(entries).partition { |entry| entry.is_a?(Symbol) }
        @subjects = patterns.map { |entry| pattern(entry) }
      end

      # @param groups [Hash{String => Array<String>}] counters of Pitwall's with their kinds
      # @param known [Array<String>] all kinds
      # @raise [UsageError] there is no such kind
      #: (Hash[String, Array[String]], Array[String]) -> void
      def check(groups, known)
        @names = @kinds.flat_map do |kind|
          found = groups[kind.to_s] || [*(kind.to_s if known.include?(kind.to_s))]
          next found unless found.empty?

          raise UsageError, "allow: #{kind.inspect}: no such change; there are #{(groups.keys | known).join(", ")}"
        end
      end

      # @param change [#kind, #subject]
      #: (untyped) -> bool
      def include?(change)
        @names.include?(change.kind) || @subjects.any? { |pattern| pattern.match?(change.subject) }
      end

      private

      def pattern(entry)
        case entry
        when Regexp then entry
        when String then /\A#{Regexp.escape(entry).gsub("\\*", ".*")}\z/
        else raise UsageError, "allow: #{entry.inspect}: a Symbol (:class_made), a String (\"Shop::Cart#*\"), a Regexp"
        end
      end
    end
    private_constant :Allowed

    class << self
      # Runs the block `warmup` times, then once while changes are recorded. Changes of all threads count.
      # @param name [String] the assertion, for errors
      # @return [Array] changes that are not allowed, the most frequent first (Analyse::Caches::Finding). A counter
      #   of Ruby's may have increased without a known line. Then the counter's name is the kind
      # @raise [StateError] a recording is running
      # @raise [UsageError] there is no block, an impossible `warmup`, an unknown kind
      # @raise [CannotMeasure] the gem pitwall is missing, or the layout of this Ruby is not known
      #: (String, ?allow: untyped, ?warmup: Integer) { () -> void } -> Array[untyped]
      def of(name, allow: [], warmup: WARMUP, &block)
        raise UsageError, "#{name} needs a block" unless block
        unless warmup.is_a?(Integer) && warmup >= 0
          raise UsageError, "warmup #{warmup.inspect}: must be an Integer, 0 or more"
        end

        allowed = Allowed.new(allow)
        refuse_recording(name)
        load_reader(name)
        allowed.check(Analyse::Caches::OWN, Analyse::Caches::KINDS)
        warmup.times { yield }
        recorded(&block).reject { |change| allowed.include?(change) }
      end

      # The message for a block with changes.
      #: (Array[untyped]) -> String
      def message(changes)
        count = changes.sum(&:count)
        head = "Expected no change that empties caches of the VM, but there #{count == 1 ? "was 1" : "were #{count}"}:"
        rest = changes.drop(TOP).sum(&:count)
        [head, *table(changes.first(TOP)), *("  and #{rest} more" if rest.positive?)].join("\n")
      end

      private

      def refuse_recording(name)
        return unless Pitwall.recording? || Collect::Session.paused?

        if Collect::Session.whole_command?
          raise StateError, "#{name} records the process, which a pitwall command records already: " \
                            "run these tests without it"
        end
        raise StateError, "#{name} records the process, which is recorded already: " \
                          "one such block at a time, none within another or within Pitwall.profile and the like"
      end

      def load_reader(name)
        require "pitwall/record"
        require "pitwall/analyse"
      rescue LoadError
        raise CannotMeasure, "#{name} needs the gem pitwall beside pitwall-core: add gem \"pitwall\" to the Gemfile"
      end

      def recorded(&block)
        base = File.join(ENV["TMPDIR"] || "/tmp", format("pitwall-%d-%08x", Process.pid, Random.new_seed & 0xffff_ffff))
        path = "#{base}.pit"
        File.open(path, File::WRONLY | File::CREAT | File::EXCL, 0o600).close
        Pitwall.caches(record: path, &block).changes
      ensure
        # A forked child writes a file of its own beside it.
        Dir.glob("#{base}{,-*}.pit") { |file| File.unlink(file) }
      end

      def table(changes)
        counts = changes.map { |change| change.count.to_s }
        kinds = changes.map(&:kind)
        changes.each_with_index.map do |change, at|
          ["  #{counts[at].rjust(counts.map(&:size).max)}  #{change.kind.ljust(kinds.map(&:size).max)}", change.subject,
           place(change)].reject(&:empty?).join("  ").rstrip
        end
      end

      def place(change) = change.path.empty? ? "" : "#{change.path.delete_prefix("#{Dir.pwd}/")}:#{change.line}"
    end
  end
end

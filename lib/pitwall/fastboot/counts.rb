# frozen_string_literal: true

module Pitwall
  module Fastboot
    # What the accelerator did in this process, and why it did not. Kept for `pitwall boot cache stats`.
    # @api private
    class Counts
      # Each count of `stats`, with its meaning.
      MEANINGS = {
        "hit" => "files whose code came from the pack",
        "hit_by_content" => "files whose attributes had changed, but not their content",
        "missing" => "files that the pack did not have",
        "changed" => "files whose content had changed",
        "damaged" => "files whose code in the pack was damaged",
        "refused" => "files whose code Ruby did not take",
        "odd" => "files that are no plain files with an absolute path",
        "stored" => "files whose code was compiled for the pack",
        "warned" => "files not stored: compiling them prints warnings",
        "moving" => "files not stored: they changed while they were compiled",
        "undumpable" => "files not stored: Ruby can't write their code",
        "verbose" => "files compiled because $VERBOSE is true, so that Ruby's warnings appear",
        "coverage" => "files compiled because Coverage counts their runs",
        "script_lines" => "files compiled because the program keeps source text (SCRIPT_LINES__, keep_script_lines)",
        "found" => "requires whose file was found without searching $LOAD_PATH",
        "not_found" => "requires that Ruby searched for itself",
        "relative_load_path" => "requires that Ruby searched for: $LOAD_PATH has an entry that is no absolute path",
        "gc_rests" => "times that garbage collection began to rest because files were loaded",
        "gc_growths" => "rests that ended because memory had grown",
        "rubygems_decides" => "requires that RubyGems had to decide: gems are not activated yet"
      }.freeze

      attr_reader :reasons

      #: () -> void
      def initialize
        @counts = Hash.new(0)
        @reasons = []
      end

      #: (Symbol) -> nil
      def add(name)
        @counts[name.name] += 1
        nil
      end

      # Sets several counts.
      #: (*untyped) -> void
      def set(*names, values)
        names.zip(values) { |name, value| @counts[name.name] = value }
      end

      # Notes a reason. Its parts may have different encodings, or bytes that none has.
      #: (*untyped) -> nil
      def because(*parts)
        reason = parts.map { |part| part.to_s.b }.join(": ").force_encoding("UTF-8").scrub.tr("\n", " ")
        @reasons << reason unless @reasons.include?(reason)
        nil
      end

      #: () -> Hash[String, Integer]
      def to_h = MEANINGS.keys.to_h { |name| [name, @counts[name]] }.select { |_, count| count.positive? }

      # Lines "name=value" for the file last-boot.
      #: () -> String
      def to_s
        lines = to_h.map { |name, count| "#{name}=#{count}" } + @reasons.map { |reason| "reason=#{reason}" }
        "#{lines.join("\n")}\n"
      end
    end
  end
end

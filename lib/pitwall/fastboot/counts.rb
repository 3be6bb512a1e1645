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
        "hit_moved" => "files that the pack had with another path and the same content",
        "missing" => "files that the pack did not have",
        "changed" => "files whose content had changed",
        "damaged" => "files whose code in the pack was damaged",
        "refused" => "files whose code Ruby did not take",
        "from_others" => "files whose code another load_iseq gave, which was asked first",
        "odd" => "files that are no plain files with an absolute path",
        "stored" => "files whose code was compiled for the pack",
        "warned" => "files not stored: compiling them prints warnings",
        "unwatched" => "files not stored: the program has its own Warning.warn, so their warnings are not known",
        "silenced" => "files not stored: $VERBOSE is nil, so Ruby would print no warnings of them",
        "moving" => "files not stored: they changed while they were compiled",
        "undumpable" => "files not stored: Ruby can't write their code",
        "verbose" => "files compiled because $VERBOSE is true, so that Ruby's warnings appear",
        "coverage" => "files compiled because Coverage counts their runs",
        "debug_strings" => "files compiled because --debug-frozen-string-literal notes where strings are made",
        "script_lines" => "files compiled because the program keeps source text (SCRIPT_LINES__, keep_script_lines)",
        "data_hit" => "YAML, JSON and time zone files whose data came from the pack",
        "data_hit_by_content" => "data files whose attributes had changed, but not their content",
        "data_hit_moved" => "data files that the pack had with another path and the same content",
        "data_missing" => "data files that the pack did not have",
        "data_changed" => "data files whose content had changed",
        "data_damaged" => "data files whose data in the pack was damaged",
        "data_refused" => "data files parsed because of an exception, which a reason names",
        "data_odd" => "data files that are no plain files, or that this user may not read",
        "data_other_options" => "data files loaded with options that are not known",
        "data_changed_library" => "data files parsed because the program has changed methods of their library",
        "data_stored" => "data files that were parsed for the pack",
        "data_silenced" => "data files not stored: $VERBOSE is nil, so their warnings would not be printed",
        "data_fresh" => "data files not stored: they changed at most 3 s before",
        "data_moving" => "data files not stored: they changed while they were parsed",
        "data_warned" => "data files not stored: parsing them prints warnings",
        "data_not_plain" => "data files not stored: they have tags, or other objects than plain ones",
        "found" => "requires whose file was found without searching $LOAD_PATH",
        "not_found" => "requires that Ruby searched for itself",
        "real_paths" => "files whose real path Ruby does not have to look up",
        "relative_load_path" => "requires that Ruby searched for: $LOAD_PATH has an entry that is no absolute path",
        "lazy_gems" => "gems that Bundler.require did not load, because they wait until they are used",
        "lazy_woken" => "of these, gems that were used, and loaded then",
        "gc_rests" => "times that garbage collection began to rest because files were loaded",
        "gc_growths" => "rests that ended because memory had grown",
        "gc_peak" => "MiB: the most memory that the process had while garbage collection rested",
        "gc_uncollected" => "MiB: estimate of that memory for a boot in which no garbage is collected",
        "gc_expected" => "MiB: memory that the next boot of this program is expected to take",
        "prefaulted" => "MiB of new memory that were touched before the program needed them",
        "heap_growth" => "MiB that malloc's heap grew until the last file was loaded; if unknown: in an earlier boot",
        "rubygems_decides" => "requires that RubyGems had to decide: gems are not activated yet"
      }.freeze

      attr_reader :reasons

      #: () -> void
      def initialize
        @counts = Hash.new(0)
        @reasons = []
      end

      # `pitwall boot` prepends a module with `add`: there each name is an answer about a file, unless
      # ext/pitwall/collectors/boot/code_caches.c lists the name in `of_none`.
      #: (Symbol) -> nil
      def add(name)
        @counts[name.name] += 1
        nil
      end

      #: (Symbol) -> bool
      def any?(name) = @counts[name.name].positive?

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

# frozen_string_literal: true

require "pitwall/views/cache_proofs"
require "pitwall/views/whole_process"

module Pitwall
  module Views
    # Lines that empty caches of the VM.
    class Caches < WholeProcess
      # "boot", "20 requests"
      AFTER = /\A(?:(?<boot>boot)|(?<works>[1-9]\d{0,8}) (?:request|job|test)s?)\z/.freeze
      private_constant :AFTER

      # @raise [UsageError]
      #: (String) -> Analyse::Caches::After
      def self.after(text)
        found = AFTER.match(text) or
          raise UsageError, "--after #{text}: write boot, or a number such as 20 requests (or jobs, or tests)"

        Analyse::Caches::After.new(boot: !found[:boot].nil?, works: found[:works]&.to_i)
      end

      #: () -> String
      def name = "caches"

      #: () -> String
      def usual_for = "changes of caches"

      #: (Recorded, String?) -> bool
      def usual?(recorded, _weight)
        recorded.segments.any?(&:caches?) && !recorded.sampled? && !recorded.traced? && !recorded.followed? &&
          !recorded.syscalls?
      end

      #: () -> Array[Symbol]
      def refused_filters = %i[time focus]

      #: () -> Array[Symbol]
      def own_options = %i[after]

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--after WHEN", "of --view caches: only what a warm program changes: boot (before the first " \
                                  "request, job or test, or Pitwall.booted), or \"20 requests\"") do |text|
          options[:after] = Caches.after(text)
        end
      end

      # @raise [UsageError] caches were not watched, or the program never became warm
      #: (Subject) -> void
      def check(subject)
        caches = caches(subject)
        unless caches.any?
          raise UsageError, "#{subject.files.join(" ")}: does not hold what empties caches: record it with " \
                            "pitwall caches -- CMD"
        end
        return if caches.warm?

        raise UsageError, "--after #{caches.after.boot ? "boot" : caches.after.works}: " \
                          "#{subject.files.join(" ")} has no such moment: " \
                          "label requests with Pitwall::Rack::Requests, or call Pitwall.booted"
      end

      #: (Subject) -> String
      def text(subject)
        proofs = CacheProofs.new(caches(subject), command: subject.asked[:command])
        drawn(Show::CachesText, subject, commands: commands(subject.file), samples: proofs.samples,
                                         **text_options(subject))
      end

      #: (Subject) -> String
      def json(subject) = drawn(Show::CachesJson, subject, warnings: subject.warnings.map(&:to_h))

      #: (Subject) -> String
      def markdown(subject)
        drawn(Show::CachesMarkdown, subject, base: subject.application.base, warnings: messages(subject))
      end

      # Commands to type next.
      #: (String) -> Array[String]
      def commands(file) = ["pitwall report #{file} #{option} --format json"]

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(segments)
        Analyse::Caches.new(segments).any? ? [tab("caches", "Caches", place: 140, weighs: false)] : []
      end

      # @api private
      #: (Subject) -> Analyse::Caches
      def caches(subject)
        Analyse::Caches.new(subject.chosen, after: subject.asked[:after] || Analyse::Caches::After.new)
      end

      private

      def drawn(drawer, subject, **options)
        caches = caches(subject)
        shown = caches.changes.first(subject.asked.limit || caches.changes.size)
        proofs = CacheProofs.new(caches, command: subject.asked[:command]).to_h(shown)
        drawer.new(caches, Analyse::Summary.new(caches.segments), limit: subject.asked.limit, proofs: proofs,
                                                                  **options).to_s
      end
    end
  end
end

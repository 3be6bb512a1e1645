# frozen_string_literal: true

require "pitwall/views/whole_process"

module Pitwall
  module Views
    # Objects by the place that allocated them.
    class Allocations < WholeProcess
      KEYS = %w[path line class type method stack].freeze
      PLACES = %i[path line class].freeze
      SORTS = { "objects" => :count, "count" => :count, "bytes" => :bytes, "old" => :old, "retained" => :retained,
                "retained_bytes" => :retained_bytes, "freed" => :freed, "age" => :total_age, "total_age" => :total_age,
                "max_age" => :max_age, "min_age" => :min_age, "slot_bytes" => :slot_bytes, "gc" => :gc_ns,
                "gc_ns" => :gc_ns }.freeze
      # Why something is not known, and what would tell it.
      UNKNOWN = { bursts: "not known in bursts; pitwall allocations -- CMD follows objects to their end",
                  killed: "not known: the process was killed, and nobody looked at its end",
                  old_version: "not known: the recording is of an older version; --sort retained counts the objects" }
                .freeze
      private_constant :KEYS, :PLACES, :SORTS, :UNKNOWN

      #: () -> String
      def name = "allocations"

      #: () -> Array[Symbol]
      def refused_filters = %i[time]

      #: () -> String
      def usual_for = "objects"

      #: (Recorded, String?) -> bool
      def usual?(recorded, weight) = recorded.only_objects? && weight.nil?

      #: () -> Array[Symbol]
      def own_options = %i[by sort retained]

      # @param options [Hash] takes :by, :sort, :retained
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--by KEYS", Array, "a row for each #{KEYS.join(", ")} (path,line,class; with --stacks also stack; " \
                                      "a line comes with its path)") { |words| options[:by] = keys(words) }
        parser.on("--sort COUNTER", SORTS, "objects, bytes, old, retained, retained_bytes, freed, age, max_age, gc " \
                                           "(objects; with --retained: retained_bytes)") do |counter|
          options[:sort] = counter
        end
        parser.on("--retained", "only what still lived at the end, by its bytes") { options[:retained] = true }
      end

      #: () -> Hash[String, Array[String]]
      def option_words = { "--by" => KEYS }

      # @raise [UsageError] nothing of the recording followed objects, or what is asked of them is not known
      #: (Subject) -> void
      def check(subject)
        allocations = Analyse::Allocations.new(subject.chosen)
        unless allocations.any?
          raise UsageError, "#{subject.files.join(" ")}: holds no allocations: " \
                            "record them with pitwall allocations -- CMD"
        end

        check_known(allocations, sort(allocations, subject.asked), subject.asked) unless subject.asked.html?
      end

      #: (Subject) -> String
      def text(subject) = drawn(Show::AllocationsText, subject, commands: commands(subject), **text_options(subject))

      #: (Subject) -> String
      def json(subject) = drawn(Show::AllocationsJson, subject, warnings: subject.warnings.map(&:to_h))

      #: (Subject) -> String
      def markdown(subject)
        drawn(Show::AllocationsMarkdown, subject, base: subject.application.base, warnings: messages(subject))
      end

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("objects", "Objects", place: 110)]

      private

      # @raise [UsageError] a key there isn't
      def keys(words)
        if words.empty? || (words - KEYS).any?
          raise UsageError, "--by #{words.join(",")}: it takes #{KEYS.join(", ")}, one or more with commas between"
        end

        words = ["path", *words] if words.include?("line") && !words.include?("path")
        words.map(&:to_sym).uniq
      end

      def drawn(drawer, subject, **options)
        allocations = Analyse::Allocations.new(subject.chosen)
        asked = subject.asked
        summary = Analyse::Summary.new(allocations.segments)
        drawer.new(allocations, summary, by: asked[:by] || PLACES, sort: sort(allocations, asked),
                                         retained: asked[:retained] || false, limit: asked.limit,
                                         findings: subject.findings_of_process, **options).to_s
      end

      # To type next.
      def commands(subject)
        view = "pitwall report #{subject.file} #{option}"
        retained = Analyse::Allocations.new(subject.chosen).retained? && !subject.asked[:retained]
        ["#{view} --sort bytes", "#{view} --by class", *("#{view} --retained" if retained)]
      end

      # Recordings of older versions don't tell the bytes of what was retained.
      def sort(allocations, asked)
        return asked[:sort] if asked[:sort]
        return :count unless asked[:retained]

        allocations.retained_bytes? ? :retained_bytes : :retained
      end

      # @raise [UsageError] as one types it
      def check_known(allocations, sort, asked)
        why = allocations.unknown(sort: sort, retained: asked[:retained] || false) or return

        option = asked[:retained] && why != :old_version ? "--retained" : "--sort #{sort}"
        raise UsageError, "#{option}: #{UNKNOWN.fetch(why)}"
      end
    end
  end
end

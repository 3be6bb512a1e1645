# frozen_string_literal: true

require "digest"

module Pitwall
  module Analyse
    # Makes recordings that can be shared.
    # Paths inside the working directory become relative. Other paths become hashes.
    # A path has the same hash in every recording, so recordings can still be compared.
    # Values of labels become hashes too, because they are the program's data (a tenant, a route). Names of labels stay.
    class Redaction
      # Prefix of a hashed path.
      OUTSIDE = "(outside)/"
      # Prefix of a label's hashed value.
      HASHED = "hashed-"
      # Values of labels that Pitwall itself sets.
      OWN_LABELS = ["(other)", "(unknown)"].freeze
      # An absolute path of two or more parts. It may be inside a name (`#<Class:/srv/app/a.rb:3>`).
      PATH = %r{(?<![\w.])/(?:[^/\s:<>"']+/)+[^/\s:<>"']+}.freeze
      # Name of code that has no file of its own, with the path in it. Such a path may have spaces.
      NESTED = /\A(<internal:|\(eval at )(\/.*?)(>|(?::\d+)?\))\z/m.freeze
      private_constant :PATH, :NESTED, :OWN_LABELS

      # Hash of a label's value: "orders#show" → "hashed-1b2f9c0d3e4a". A hash and a value of OWN_LABELS stay the same.
      #: (String) -> String
      def self.label(value)
        value.start_with?(HASHED) || OWN_LABELS.include?(value) ? value : "#{HASHED}#{digest(value)}"
      end

      def self.digest(text) = Digest::SHA256.hexdigest(text)[0, 12]
      private_class_method :digest

      # @param base [String] the working directory
      #: (base: String) -> void
      def initialize(base:)
        @base = "#{base.chomp("/")}/"
        @paths = {}
      end

      # Redacted copies of the segments.
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments) = segments.map { |segment| segment(segment) }

      # Redacts a path: "/srv/app/lib/a.rb" → "lib/a.rb"; "/home/ann/b.rb" → "(outside)/3f2a….rb";
      # "(eval at /srv/app/lib/a.rb:3)" → "(eval at lib/a.rb:3)"
      #: (String) -> String
      def path(path)
        @paths[path] ||= case path
                         when %r{\A/} then path.start_with?(@base) ? path.delete_prefix(@base) : hashed(path)
                         when %r{\A\.\./} then hashed(path)
                         when NESTED then "#{Regexp.last_match(1)}#{path(Regexp.last_match(2))}#{path[NESTED, 3]}"
                         else text(path)
                         end
      end

      # Redacts the absolute paths inside a text.
      #: (String) -> String
      def text(text) = text.include?("/") ? text.gsub(PATH) { |found| path(found) } : text

      private

      def segment(segment)
        segment.with(
          header: Record::Header.new(value(segment.header.fields)),
          strings: names(segment),
          syscall_ids: segment.syscall_totals.each_value.with_index.to_h { |sums, at| [at, sums] },
          syscall_source: syscall_source(segment),
          frames: segment.frames.transform_values { |frame| frame(frame) },
          shared_objects: segment.shared_objects.map { |one| one.dup.tap { |copy| copy.path = path(one.path) } },
          threads: segment.threads.transform_values { |info| thread(info) },
          label_sets: segment.label_sets.map { |set| set&.transform_values { |value| Redaction.label(value) } },
          sites: segment.sites.map { |site| site.dup.tap { |copy| copy.class_name = text(site.class_name) } },
          loads: segment.loads.map { |load| with_paths(load, %i[name path from]) },
          repeated_loads: segment.repeated_loads.map { |load| with_paths(load, %i[name from]) },
          file_uses: segment.file_uses.map { |use| with_paths(use, %i[path]) },
          holders: segment.holders&.then { |holders| holders.dup.tap { |copy| copy.paths = value(holders.paths) } },
          stats: value(segment.stats), tail: segment.tail && value(segment.tail)
        )
      end

      def with_paths(row, names) = row.dup.tap { |copy| names.each { |name| copy[name] = path(row[name]) } }

      def frame(frame)
        Record::Frame.new(frame.id, text(frame.name), path(frame.path), frame.first_line, frame.kind)
      end

      def thread(info) = Record::ThreadInfo.new(info.id, info.native_id, info.start_ns, text(info.name))

      def syscall_source(segment)
        return unless segment.syscall_rows?

        ->(_, &block) { segment.each_syscall { |call| block.call(syscall(call)) } }
      end

      # The names of system calls. All other strings of the segment are dropped.
      def names(segment) = segment.syscall_totals.each_key.map { |name| text(name) }

      def syscall(call)
        call.dup.tap { |copy| %i[path path2 cwd].each { |name| copy[name] = bytes(call[name]) } }
      end

      # The path of a system call may be invalid UTF-8.
      def bytes(path) = path && (path.valid_encoding? ? path(path) : hashed(path))

      def value(value)
        case value
        when String then text(value)
        when Array then value.map { |item| value(item) }
        when Hash then value.transform_values { |item| value(item) }
        else value
        end
      end

      def hashed(path) = "#{OUTSIDE}#{Digest::SHA256.hexdigest(path)[0, 12]}#{File.extname(path)[/\A\.\w{1,4}\z/]}"
    end
  end
end

# frozen_string_literal: true

require "digest"

module Pitwall
  module Analyse
    # Recordings for sharing: paths inside the working directory become relative, all others a hash that stays the same
    # from recording to recording, so that they can still be told apart and compared. Values of labels become hashes too: they are
    # the program's own (a tenant, a route), and nobody knows what stands in them. Names of labels stay.
    class Redaction
      # What stands before a hashed path.
      OUTSIDE = "(outside)/"
      # What stands before a label's hashed value, and what Pitwall itself says in place of one.
      HASHED = "hashed-"
      OWN_LABELS = ["(other)", "(unknown)"].freeze
      # An absolute path of two or more parts, as it may also stand inside a name (`#<Class:/srv/app/a.rb:3>`).
      PATH = %r{(?<![\w.])/(?:[^/\s:<>"']+/)+[^/\s:<>"']+}.freeze
      # Code that stands in no file of its own, with the path that its name holds; there it may have spaces.
      NESTED = /\A(<internal:|\(eval at )(\/.*?)(>|(?::\d+)?\))\z/m.freeze
      private_constant :PATH, :NESTED, :OWN_LABELS

      # A label's value, hashed: "orders#show" → "hashed-1b2f9c0d3e4a"; one that is already stays.
      #: (String) -> String
      def self.label(value) = value.start_with?(HASHED) || OWN_LABELS.include?(value) ? value : "#{HASHED}#{digest(value)}"

      def self.digest(text) = Digest::SHA256.hexdigest(text)[0, 12]
      private_class_method :digest

      # @param base [String] the working directory
      #: (base: String) -> void
      def initialize(base:)
        @base = "#{base.chomp("/")}/"
        @paths = {}
      end

      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments) = segments.map { |segment| segment(segment) }

      # "/srv/app/lib/a.rb" → "lib/a.rb"; "/home/ann/b.rb" → "(outside)/3f2a….rb";
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

      # Paths within a text.
      #: (String) -> String
      def text(text) = text.include?("/") ? text.gsub(PATH) { |found| path(found) } : text

      private

      def segment(segment)
        segment.with(
          header: Record::Header.new(value(segment.header.fields)),
          strings: names(segment), syscall_ids: segment.syscall_totals.each_value.with_index.to_h { |sums, at| [at, sums] },
          syscall_source: segment.syscall_rows? ? ->(_, &block) { segment.each_syscall { |call| block.call(syscall(call)) } } : nil,
          frames: segment.frames.transform_values { |frame| Record::Frame.new(frame.id, text(frame.name), path(frame.path), frame.first_line, frame.kind) },
          threads: segment.threads.transform_values { |info| Record::ThreadInfo.new(info.id, info.native_id, info.start_ns, text(info.name)) },
          label_sets: segment.label_sets.map { |set| set&.transform_values { |value| Redaction.label(value) } },
          sites: segment.sites.map { |site| site.dup.tap { |copy| copy.class_name = text(site.class_name) } },
          holders: segment.holders&.then { |held| held.dup.tap { |copy| copy.paths = value(held.paths) } },
          stats: value(segment.stats), tail: segment.tail && value(segment.tail)
        )
      end

      # Of all strings only what system calls are called.
      def names(segment) = segment.syscall_totals.each_key.map { |name| text(name) }

      def syscall(call)
        call.dup.tap { |copy| %i[path path2 cwd].each { |name| copy[name] = bytes(call[name]) } }
      end

      # A path of a system call may be any bytes.
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

# frozen_string_literal: true

require "pitwall/record/import/format"

module Pitwall
  module Record
    module Import
      # Collapsed stacks: lines of frames from the root to the leaf, separated by semicolons, then a count:
      # `main;Shop#sum;Array#each 1200`. The format doesn't say what the counts are. They are samples, unless one says
      # otherwise (nanoseconds of wall or CPU time, objects, bytes).
      # @api private
      class Collapsed < Format
        LINE = /\A(.+?)[ \t]+(\d{1,18})[ \t]*\z/.freeze
        # What --type may name → keyword of a row or of a site.
        TYPES = { "samples" => :captures, "wall" => :wall, "cpu" => :cpu, "objects" => :count,
                  "bytes" => :bytes }.freeze
        # Lines that tell the format.
        LOOKED_AT = 50
        # "Shop#sum (/app/shop.rb:10)" as py-spy and others write it, "Shop#sum - /app/shop.rb:10" as rbspy does.
        PLACED = %r{\A(.+) \(([^()]*[/.][^()]*?)(?::\d+)?\)\z}.freeze
        DASHED = %r{\A(.+) - ([^ ]*[/.][^ ]*):\d+\z}.freeze
        private_constant :LINE, :TYPES, :LOOKED_AT, :PLACED, :DASHED

        class << self
          def title = "collapsed stacks"

          # Each line ends with a count, and some line has more than one frame.
          def fits?(source)
            lines = source.beginning.dup.force_encoding(Encoding::UTF_8).scrub("?").split(/\r?\n/)
            lines.pop if source.beginning.bytesize >= 60 * 1024 # it may be half a line
            lines = lines.reject { |line| line.strip.empty? || line.start_with?("#") }.first(LOOKED_AT)
            lines.any? && lines.all? { |line| line.match?(LINE) } && lines.any? { |line| line.include?(";") }
          end
        end

        def write(writer)
          weight = TYPES.fetch(chosen_type(TYPES.keys))
          @segment = segment(writer, sampled: %i[captures wall cpu].include?(weight))
          @segment.thread(THREAD, "")
          bad = 0
          @source.each_line do |text|
            next if text.strip.empty? || text.start_with?("#")

            match = LINE.match(text)
            match ? add(stack(match[1]), weight, match[2].to_i) : bad += 1
          end
          @warnings << "#{bad} line#{"s" if bad > 1} without a count at the end could not be read" if bad.positive?
          @segment.close
        end

        private

        def stack(text)
          @frames ||= Hash.new { |frames, name| frames[name] = @segment.frame(*parts(name)) }
          text.split(";").inject(0) { |parent, name| @segment.node(parent, @frames[name]) }
        end

        # Name, path, first line and kind of a frame. Several tools add the place to the name.
        def parts(text)
          return [text.delete_suffix("_[k]"), "[kernel]", 0, Frame::NATIVE] if text.end_with?("_[k]")

          name, path = (PLACED.match(text) || DASHED.match(text))&.values_at(1, 2)
          name ? [name, path, 0, kind(name, path)] : [text, "", 0, kind(text, "")]
        end

        def add(node, weight, value)
          return @segment.site(node: node, weight => value) if %i[count bytes].include?(weight)

          @segment.row(thread: THREAD, node: node, state: UNKNOWN, captures: 0, weight => value)
        end
      end
      private_constant :Collapsed
    end
  end
end

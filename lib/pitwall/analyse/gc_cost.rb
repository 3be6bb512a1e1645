# frozen_string_literal: true

require "pitwall/analyse/estimate"
require "pitwall/analyse/gc_prediction"
require "pitwall/analyse/gc_timeline"
require "pitwall/analyse/method_info"
require "pitwall/analyse/method_match"
require "pitwall/errors"

module Pitwall
  module Analyse
    # What lines of code cost with the garbage collection that they cause. Own time is measured, from samples, collection left
    # out. The rest is a model: the collector divides each run's time among the places that allocated since the run before, by
    # objects or, where malloc'd bytes brought the run about, by those (Record::Site#gc_ns).
    #
    # Needs a recording with sites; own times need samples in the same recordings.
    class GCCost
      # A line: method that it is in (the heaviest of several; nil: none); own_ns; gc_ns charged; objects and bytes allocated
      # (scaled up where objects were sampled); classes, those with most objects first. path "" and line 0: no line of Ruby.
      Row = Struct.new(:path, :line, :method, :own_ns, :gc_ns, :objects, :bytes, :classes) do
        #: () -> Integer
        def together_ns = own_ns + gc_ns
      end

      # @return [Symbol] :wall or :cpu, of own times
      attr_reader :weight

      #: (Array[Record::Segment], ?weight: Symbol) -> void
      def initialize(segments, weight: :wall)
        @segments = segments
        @weight = weight == :cpu ? :cpu : :wall
      end

      # Whether places of allocation were recorded.
      #: () -> bool
      def sites? = @segments.any? { |segment| program_sites(segment).any? }

      # Whether samples were taken.
      #: () -> bool
      def samples? = @segments.any? { |segment| segment.tallies.any? }

      # Whether only some of the objects were followed.
      #: () -> bool
      def sampled? = @segments.any? { |segment| scale(segment) > SAMPLED }

      # Whether places are whole stacks. Where they aren't, what a line's callees allocate is not counted for the line.
      #: () -> bool
      def stacks? = @segments.any? { |segment| program_sites(segment).any? { |site| !segment.parents[site.node].zero? } }

      #: () -> GCTimeline
      def timeline = @timeline ||= GCTimeline.new(@segments)

      # Lines that allocate, those that cost most together first.
      #: () -> Array[Row]
      def rows
        @rows ||= begin
          found = {}
          @segments.each { |segment| add(segment, found) }
          found.each_value.reject { |row| row.objects.zero? && row.gc_ns.zero? }
               .each { |row| row.classes = row.classes.sort_by { |name, count| [-count, name] }.map(&:first) }
               .sort_by { |row| [-row.together_ns, -row.objects, row.path, row.line] }
        end
      end

      # Collection charged to the program's places.
      #: () -> Integer
      def charged_ns = @segments.sum { |segment| program_sites(segment).sum { |site| charged(segment, site) }.round }

      # What the whole lived, and how much of it in collection.
      #: () -> [Integer, Integer]
      def whole = [timeline.wall_ns, timeline.total_ns]

      # What removing a place would save: its own time, that of all it calls, and the collection that both cause.
      # @param place [String] "PATH:LINE" (the end of a path is enough) or a method's name
      # @raise [UsageError] when the recording has no such place, or no sites
      #: (String, ?level: Float) -> GCPrediction
      def predict(place, level: GCPrediction::LEVEL)
        raise UsageError, NO_SITES unless sites?

        test = place_test(place)
        parts = @segments.map { |segment| part(segment, inside(segment, test)) }
        raise UsageError, "#{place} neither ran in a sample nor allocates in this recording#{near(place)}" if parts.all? { |part| part.objects.zero? && part.captures.zero? }

        GCPrediction.of(place, parts, timeline, weight: @weight, level: level)
      end

      NO_SITES = "the recording has no places of allocation: record it with `pitwall profile --allocations 1/512 -- CMD`"
      # A following of fewer objects than were allocated, beyond what the VM allocates for itself.
      SAMPLED = 1.5
      # Ids of rows for garbage from before the recording, and of the first that stands for a place (Record::Site).
      EARLIER = 4
      FIRST_PLACE = 5
      # Stands for the root, which no name means.
      NOTHING = MethodInfo.new("", "", 0, 4).freeze
      private_constant :SAMPLED, :EARLIER, :FIRST_PLACE, :NOTHING

      private

      def program_sites(segment)
        @program_sites ||= {}.compare_by_identity
        @program_sites[segment] ||= segment.sites.select { |site| site.id >= FIRST_PLACE }
      end

      # Objects that each followed one stands for.
      def scale(segment)
        @scales ||= {}.compare_by_identity
        @scales[segment] ||= begin
          followed = segment.sites.sum(&:count)
          allocated = segment.allocation_totals&.allocated.to_i
          followed.positive? && allocated > followed * SAMPLED ? allocated.fdiv(followed) : 1.0
        end
      end

      # Where objects are followed in bursts, runs that came between two of them found nobody to charge: their time is divided as
      # that of the others was.
      def charged(segment, site)
        return site.gc_ns unless scale(segment) > SAMPLED

        @uncharged ||= {}.compare_by_identity
        factor = @uncharged[segment] ||= begin
          lost = segment.sites.select { |other| other.id == EARLIER }.sum(&:gc_ns)
          charged = segment.sites.sum(&:gc_ns) - lost
          charged.positive? ? 1 + lost.fdiv(charged) : 1.0
        end
        site.gc_ns * factor
      end

      # ---- lines ----

      def add(segment, found)
        places = places(segment)
        weights(segment) { |node, ns, _| places[node] && !gc?(segment, node) && row(found, segment, places[node]).own_ns += ns }
        factor = scale(segment)
        program_sites(segment).each do |site|
          row = row(found, segment, places[site.node])
          row.objects += (site.count * factor).round
          row.bytes += (site.bytes * factor).round
          row.gc_ns += charged(segment, site).round
          row.classes[site.class_name] += site.count unless site.class_name.empty?
        end
      end

      # By node: the nearest node from there to the root that is a line of Ruby; nil where there is none.
      def places(segment)
        places = Array.new(segment.parents.size)
        (1...places.size).each { |node| places[node] = line?(segment, node) ? node : places[segment.parents[node]] }
        places
      end

      def line?(segment, node)
        frame = segment.frame(node)
        frame.kind == Record::Frame::RUBY && !frame.path.empty? && segment.lines[node].positive?
      end

      def gc?(segment, node) = segment.frame(node).kind == Record::Frame::GC

      def row(found, segment, node)
        frame = node && segment.frame(node)
        path, line = node ? [frame.path, segment.lines[node]] : ["", 0]
        found[[path, line]] ||= Row.new(path, line, frame && MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind), 0, 0, 0, 0, Hash.new(0))
      end

      # @yield [node, ns, captures]
      def weights(segment)
        unit = segment.unit_ns
        segment.tallies.each do |tally|
          tally.each { |node, wall, cpu, captures| yield node, (@weight == :cpu ? cpu : wall) * unit, captures }
        end
      end

      # ---- one place ----

      def place_test(place)
        path, line = place.match(/\A(.+):(\d+)\z/)&.captures
        return line_test(path, line.to_i) if path

        frames = @segments.flat_map { |segment| segment.frames.values }
        methods = frames.map { |frame| MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind) }.uniq
        numbers = MethodMatch.find([NOTHING, *methods], place, sought: "line (PATH:LINE) or method")
        wanted = numbers.to_h { |number| [methods[number - 1].to_a.first(3), true] }
        ->(segment, node) { (frame = segment.frame(node)) && wanted[[frame.name, frame.path, frame.first_line]] }
      end

      def line_test(path, line)
        lambda do |segment, node|
          segment.lines[node] == line && line?(segment, node) && ((found = segment.frame(node).path) == path || found.end_with?("/#{path}"))
        end
      end

      # By node: whether it is the place or below it.
      def inside(segment, test)
        inside = Array.new(segment.parents.size, false)
        (1...inside.size).each { |node| inside[node] = inside[segment.parents[node]] || (test.call(segment, node) ? true : false) }
        inside
      end

      def part(segment, inside)
        part = GCPrediction::Part.new(0, 0, 0, 0.0, 0, 0, 0, 0, scale(segment) > SAMPLED)
        weights(segment) do |node, ns, captures|
          part.all_captures += captures
          next if !inside[node] || gc?(segment, node)

          part.own_ns += ns
          part.captures += captures
        end
        factor = scale(segment)
        segment.sites.each do |site|
          part.all_followed += site.count
          next unless site.id >= FIRST_PLACE && inside[site.node]

          part.followed += site.count
          part.objects += (site.count * factor).round
          part.bytes += (site.bytes * factor).round
          part.gc_ns += charged(segment, site)
        end
        part
      end

      def near(place)
        file = place[/([^\/]+):\d+\z/, 1] or return ""
        lines = rows.select { |row| File.basename(row.path) == file }.first(3).map { |row| "#{file}:#{row.line}" }
        lines.empty? ? "" : "; of that file, #{lines.join(", ")} cost most"
      end
    end
  end
end

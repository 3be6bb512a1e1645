# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/gc/gc_prediction"
require "pitwall/analyse/gc/gc_timeline"
require "pitwall/analyse/gc/gc_work"
require "pitwall/analyse/recording/method_info"
require "pitwall/analyse/tree/method_match"
require "pitwall/errors"
require "pitwall/record/chunks/sites"

module Pitwall
  module Analyse
    # Costs of lines of code with the garbage collection that they cause.
    #
    # Own time is measured by samples, without garbage collection. Collection time is charged to lines by a model.
    # The recorder divides the time of each GC run among the allocation sites that allocated since the run before, by
    # number of objects. If malloc'ed bytes triggered the run, it divides by bytes (Record::Site#gc_ns).
    # A site's share of the sum of these times is its share of the collection time.
    #
    # Following objects slows the lines that allocate. So with several recordings of the same work, times come from the
    # recordings that followed no objects, and shares come from those that did.
    class GCCost
      # A line.
      #
      # path, line:     "" and 0 for no line of Ruby
      # method:         of the line; the heaviest if there are several, nil if there is none
      # own_ns:         self time
      # gc_ns:          collection time charged to the line
      # objects, bytes: allocated; scaled up if only some objects were followed
      # classes:        names, the one with most objects first
      Row = Struct.new(:path, :line, :method, :own_ns, :gc_ns, :objects, :bytes, :classes) do
        # Self time and charged collection time.
        #: () -> Integer
        def together_ns = own_ns + gc_ns
      end

      # @return [Symbol] :wall or :cpu, the clock of all times
      attr_reader :weight

      #: (Array[Record::Segment], ?weight: Symbol) -> void
      def initialize(segments, weight: :wall)
        @segments = segments
        @weight = weight == :cpu ? :cpu : :wall
        sampled = segments.select { |segment| segment.tallies.any? }
        undisturbed = sampled.reject { |segment| follows?(segment) }
        @timed = [undisturbed, sampled, segments].find(&:any?) || []
        @sited = segments.select { |segment| allocating_sites(segment).any? }
      end

      # Whether allocation sites were recorded.
      #: () -> bool
      def sites? = @sited.any?

      # Whether samples were taken.
      #: () -> bool
      def samples? = @timed.any? { |segment| segment.tallies.any? }

      # Whether times come from a run that followed every object. Lines that allocate were slower in such a run.
      #: () -> bool
      def disturbed? = samples? && @timed.any? { |segment| follows?(segment) && scale(segment) <= SAMPLED }

      # Whether only some of the objects were followed.
      #: () -> bool
      def sampled? = @sited.any? { |segment| scale(segment) > SAMPLED }

      # Whether sites have whole stacks. Without them, the allocations of a line's callees do not count for the line.
      #: () -> bool
      def stacks?
        @sited.any? { |segment| allocating_sites(segment).any? { |site| !segment.parents[site.node].zero? } }
      end

      # GC runs of the recordings that times come from.
      #: () -> GCTimeline
      def timeline = @timeline ||= GCTimeline.new(@timed)

      # Collection time in ns, in the clock of the weight.
      #: () -> Integer
      def gc_ns = @gc_ns ||= (timeline.total_ns * clock_factor).round

      # Lines that allocate, most time (self and charged together) first.
      #: () -> Array[Row]
      def rows
        @rows ||= begin
          found = {}
          @timed.each { |segment| add_times(segment, found) }
          @sited.each { |segment| add_sites(segment, found) }
          found.each_value.reject { |row| row.objects.zero? && row.gc_ns.zero? }
               .each { |row| row.classes = row.classes.sort_by { |name, count| [-count, name] }.map(&:first) }
               .sort_by { |row| [-row.together_ns, -row.objects, row.path, row.line] }
        end
      end

      # Collection time charged to the program's sites, in ns.
      #: () -> Integer
      def charged_ns = @sited.sum { |segment| allocating_sites(segment).sum { |site| charged(site) } }.round

      # Wall time of the processes, in ns.
      #: () -> Integer
      def wall_ns = timeline.wall_ns

      # The whole time in the clock of the weight, in ns: wall time, or CPU time of the processes.
      # The CPU time is at least the sum of all samples.
      #: () -> Integer
      def whole_ns
        return wall_ns unless @weight == :cpu

        [@timed.sum { |segment| segment.stat("process_cpu_ns") }, sampled_ns + gc_ns].max
      end

      # Number of recordings that times come from.
      #: () -> Integer
      def recordings = [@timed.map(&:recording).uniq.size, 1].max

      # What all processes spent: own time without collection, collection time, GC runs, and the part of own time in a
      # place and its callees.
      # @param place [String, nil] a place that the recording does not have takes no time
      #: (String?) -> PredictionCheck::Spent
      def spent(place)
        own = [@weight == :wall ? wall_ns - gc_ns : sampled_ns, 0].max
        PredictionCheck::Spent.new(own, gc_ns, timeline.count, place ? [place_ns(place), own].min : 0)
      end

      # Predicted saving of removing a place: its own time, its callees' time, and the collection time that they cause.
      # @param place [String] "PATH:LINE" (the end of a path is enough) or a method's name
      # @raise [UsageError] when the recording has no such place, or no allocation sites
      #: (String, ?level: Float) -> GCPrediction
      def predict(place, level: GCPrediction::LEVEL)
        raise UsageError, NO_SITES unless sites?

        test = place_test(place)
        times = @timed.map { |segment| times(segment, inside(segment, test)) }
        chosen = @sited.map do |segment|
          inside = inside(segment, test)
          [segment, allocating_sites(segment).select { |site| inside[site.node] }]
        end
        sites = chosen.map { |segment, place_sites| followed(segment, place_sites) }
        if sites.sum(&:objects).zero? && times.sum(&:captures).zero?
          raise UsageError, "#{place} neither ran in a sample nor allocates in this recording#{near(place)}"
        end

        GCPrediction.of(place, times, sites, timeline, whole_ns: whole_ns, work: GCWork.shares(chosen),
                                                       factor: clock_factor, weight: @weight, level: level)
      end

      NO_SITES = "the recording has no places of allocation: record it with `pitwall profile --allocations -- CMD`, " \
                 "or name one of `pitwall allocations --stacks -- CMD` beside it (compare: --recording FILE)"
      # Form of a place that is a line. Other places are methods.
      LINE = /\A(.+):(\d+)\z/.freeze
      # Only some objects were followed if this many times as many were allocated.
      # The VM's own objects are not followed.
      SAMPLED = 1.5
      # Method 0 of a tree is the root, which no name matches.
      NOTHING = MethodInfo.new("", "", 0, 4).freeze
      private_constant :SAMPLED, :NOTHING

      private

      # Sites that are places in the program's code.
      def allocating_sites(segment)
        @allocating_sites ||= {}.compare_by_identity
        @allocating_sites[segment] ||= segment.sites.select(&:place?)
      end

      # Number of allocated objects for each followed object.
      def scale(segment)
        @scales ||= {}.compare_by_identity
        @scales[segment] ||= begin
          followed = segment.sites.sum(&:count)
          allocated = segment.allocation_totals&.allocated.to_i
          followed.positive? && allocated > followed * SAMPLED ? allocated.fdiv(followed) : 1.0
        end
      end

      def follows?(segment) = segment.header.collectors.include?("allocations")

      # Collection time charged to a site, in ns.
      # If all objects were followed, garbage from before the recording gets its share.
      # If objects were followed in bursts, such garbage is mostly that of GC runs between two bursts, so its share is
      # divided among the other sites.
      def charged(site)
        @all_charged ||= @sited.sum do |segment|
          segment.sites.sum { |other| shares?(segment, other) ? other.gc_ns : 0 }
        end
        @all_charged.zero? ? 0.0 : site.gc_ns.fdiv(@all_charged) * gc_ns
      end

      # Whether collection time is charged to a site.
      def shares?(segment, site)
        return scale(segment) <= SAMPLED if site.id == Record::Site::NOBODY

        site.id != Record::Site::PITWALL
      end

      # Collection time in the clock of the weight, relative to wall time. GC runs are timed by the wall clock; samples
      # in them show how much of it was CPU time.
      def clock_factor
        return 1.0 if @weight == :wall

        @clock_factor ||= begin
          sums = [0, 0]
          @timed.each do |segment|
            segment.tallies.each do |tally|
              tally.each do |node, wall, cpu, _|
                next unless gc?(segment, node)

                sums[0] += wall * segment.unit_ns
                sums[1] += cpu * segment.unit_ns
              end
            end
          end
          sums[0].zero? ? 1.0 : [sums[1].fdiv(sums[0]), 1.0].min
        end
      end

      # ---- lines ----

      def add_times(segment, found)
        places = places(segment)
        weights(segment) do |node, ns, _|
          row(found, segment, places[node]).own_ns += ns if places[node] && !gc?(segment, node)
        end
      end

      def add_sites(segment, found)
        places = places(segment)
        factor = scale(segment)
        allocating_sites(segment).each do |site|
          row = row(found, segment, places[site.node])
          row.objects += (site.count * factor).round
          row.bytes += (site.bytes * factor).round
          row.gc_ns += charged(site).round
          row.classes[site.class_name] += site.count unless site.class_name.empty?
        end
      end

      # By node: the nearest node at or above it that is a line of Ruby; nil if there is none.
      # Ruby's own methods in Ruby (e.g. Kernel#clone) count for their callers, if there are any.
      def places(segment)
        places = Array.new(segment.parents.size)
        (1...places.size).each do |node|
          above = places[segment.parents[node]]
          own = above && segment.frame(node).path.start_with?("<internal:") ? false : line?(segment, node)
          places[node] = own ? node : above
        end
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
        found[[path, line]] ||= begin
          method = frame && MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
          Row.new(path, line, method, 0, 0, 0, 0, Hash.new(0))
        end
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
        path, line = place.match(LINE)&.captures
        return line_test(path, line.to_i) if path

        frames = (@timed | @sited).flat_map { |segment| segment.frames.values }
        methods = frames.map { |frame| MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind) }.uniq
        numbers = MethodMatch.find([NOTHING, *methods], place, sought: "line (PATH:LINE) or method")
        wanted = numbers.to_h { |number| [methods[number - 1].to_a.first(3), true] }
        ->(segment, node) { (frame = segment.frame(node)) && wanted[[frame.name, frame.path, frame.first_line]] }
      end

      def line_test(path, line)
        lambda do |segment, node|
          next unless segment.lines[node] == line && line?(segment, node)

          found = segment.frame(node).path
          found == path || found.end_with?("/#{path}")
        end
      end

      # By node: whether it is in the place or below it.
      def inside(segment, test)
        inside = Array.new(segment.parents.size, false)
        (1...inside.size).each do |node|
          inside[node] = inside[segment.parents[node]] || (test.call(segment, node) ? true : false)
        end
        inside
      end

      def times(segment, inside)
        times = GCPrediction::Times.new(0, 0, 0)
        weights(segment) do |node, ns, captures|
          times.all_captures += captures
          next if !inside[node] || gc?(segment, node)

          times.own_ns += ns
          times.captures += captures
        end
        times
      end

      def followed(segment, sites)
        factor = scale(segment)
        GCPrediction::Followed.new(sites.sum { |site| charged(site) }, (sites.sum(&:count) * factor).round,
                                   (sites.sum(&:bytes) * factor).round, sites.sum(&:count),
                                   segment.sites.sum(&:count), factor > SAMPLED, segment.stat("elapsed_ns"))
      end

      # Self time of all samples outside garbage collection, in ns.
      def sampled_ns
        sum = 0
        @timed.each { |segment| weights(segment) { |node, ns, _| sum += ns unless gc?(segment, node) } }
        sum
      end

      def place_ns(place)
        test = place_test(place)
        @timed.sum { |segment| times(segment, inside(segment, test)).own_ns }
      rescue UsageError
        0
      end

      def near(place)
        file = place[/([^\/]+):\d+\z/, 1] or return ""
        lines = rows.select { |row| File.basename(row.path) == file }.first(3).map { |row| "#{file}:#{row.line}" }
        lines.empty? ? "" : "; of that file, #{lines.join(", ")} cost most"
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/analyse/boot/advice"
require "pitwall/analyse/boot/cached"
require "pitwall/analyse/boot/calls"
require "pitwall/analyse/boot/change"
require "pitwall/analyse/boot/drawing"
require "pitwall/analyse/boot/owners"
require "pitwall/analyse/boot/requirers"
require "pitwall/analyse/boot/tree"
require "pitwall/analyse/boot/uses"

module Pitwall
  module Analyse
    # What a program loads until it has booted, as a tree with times, objects and memory.
    #
    # A boot ends when the program calls Pitwall.booted, when its first request, job or test begins, or else when the
    # process ends. A process that replaces itself (exec) goes on with its boot. Of several processes the one with the
    # most loads is looked at.
    class Boot
      # Kinds of loads that add a feature.
      FEATURES = %w[require require_relative autoload].freeze
      FEW = 10
      FEW_OF_ALL = 0.02
      private_constant :FEATURES, :FEW, :FEW_OF_ALL

      # @return [Array<Record::Segment>] of the process that is looked at
      attr_reader :segments
      # @return [Array<Record::Segment>] of other processes whose loads were watched
      attr_reader :others
      # @return [Owners]
      attr_reader :owners

      #: (Array[Record::Segment], origin: Origin) -> void
      def initialize(segments, origin:)
        @all = segments
        watched = segments.select(&:boot?)
        by_pid = watched.group_by { |segment| segment.header.pid }
        @segments = by_pid.each_value.max_by { |runs| runs.sum { |run| run.loads.size } } || []
        @others = watched - @segments
        @owners = Owners.new(origin)
      end

      #: () -> bool
      def any? = @segments.any?

      # Loads of the boot, a tree for each time that the process began to run a program.
      #: () -> Array[Tree]
      def trees = @trees ||= @segments.map { |segment| Tree.new(of_boot(segment), calls: calls(segment)) }

      # @return [Array<Node>] all loads of the boot, in the order in which they began
      #: () -> Array[Node]
      def nodes = @nodes ||= trees.flat_map(&:nodes)

      #: () -> Array[Node]
      def roots = trees.flat_map(&:roots)

      # Loads after the boot: by a request, a job or a test.
      #: () -> Array[Record::Load]
      def late = @segments.flat_map { |segment| segment.loads.reject { |load| of_boot?(segment, load) } }

      # What ended the boot: "booted" (the first work, or Pitwall.booted), "end" (of the process), "killed".
      #: () -> String
      def ended_by
        last = @segments.last
        %w[booted end].find { |moment| last.boot_sizes(moment).any? } || "killed"
      end

      # From the start of the process to the end of the boot, without what Pitwall needed to start.
      #: () -> Integer
      def wall_ns = [@segments.last.boot_number("age_ns") + elapsed(@segments.last) - own_ns, 0].max

      # What Pitwall needed to start, in this process.
      #: () -> Integer
      def own_ns = @segments.sum { |segment| segment.boot_number("own_ns") }

      # Before the recording began: the start of Ruby, RubyGems and what RUBYOPT loads before.
      #: () -> Integer
      def before_ns
        first = @segments.first
        [first.boot_number("age_ns") - first.boot_number("own_ns"), 0].max
      end

      # From the first recording of the process to the recording after its last exec. 0: there was no exec.
      #: () -> Integer
      def before_exec_ns = [@segments.last.boot_number("age_ns") - own_ns - before_ns, 0].max

      # Bundler starts the command once more if the lock names another version of Bundler. It does so while
      # bundler/setup is loaded, or in the command `bundle`.
      #: () -> bool
      def restarted_by_bundler?
        @segments.each_cons(2).any? do |first, second|
          [first, second].all? { |segment| segment.header.program == "bundle" } ||
            first.loads.any? { |load| load.ending == 1 && load.path.end_with?("/bundler/setup.rb") }
        end
      end

      # Outside of all loads: the program's own file, and what it waits for.
      #: () -> Integer
      def outside_ns = [wall_ns - before_ns - of_loads(:wall), 0].max

      # Objects of the boot that no load of the main thread made.
      #: () -> Integer
      def outside_objects = [grown("objects") - of_loads(:objects), 0].max

      # Figures of the whole boot; CPU time has what Pitwall needed to start. {wall: ns, cpu: ns, gc: ns, objects:,
      # bytes:, rss:, calls:, features:, load_path:, gc_runs:, cache_hits:, cache_misses:}; nil: was not recorded, or no
      # cache was asked
      #: () -> Hash[Symbol, Integer?]
      def figures
        to = sizes
        { wall: wall_ns, cpu: to.fetch("cpu_ns", 0), gc: grown("gc_ns"), objects: grown("objects"),
          bytes: grown("bytes"), rss: to.fetch("rss", 0), calls: calls? ? all_calls : nil,
          features: to.fetch("features", 0), load_path: to.fetch("load_path", 0), gc_runs: grown("gc_runs"),
          **cache_figures }
      end

      # Sizes of the process at the end of the boot: {"features" => 2125, …}
      #: () -> Hash[String, Integer]
      def sizes
        sizes_after(@segments.last)
      end

      # Sizes when the recording began.
      #: () -> Hash[String, Integer]
      def sizes_before = @segments.first.boot_sizes("start")

      # Slots of each of Ruby's heaps at the end of the boot.
      #: () -> Array[Integer]
      def heap_slots
        sums = @segments.last.boot_sums
        slots = %w[booted end].filter_map { |moment| sums[moment] }.grep(Hash).first&.fetch("heap_slots", nil)
        slots.is_a?(Array) ? slots.grep(Integer) : []
      end

      # Requires that found their file loaded already, and their time.
      #: () -> [Integer, Integer]
      def repeats
        inside = nodes.map(&:row)
        [inside.sum(&:repeats) + @segments.sum { |segment| segment.boot_number("repeats") },
         inside.sum(&:repeat_ns) + @segments.sum { |segment| segment.boot_number("repeat_ns") }]
      end

      # Loads that raised, such as a require of a gem that is not there.
      #: () -> Array[Node]
      def failed = nodes.select(&:raised?)

      # Loads that are not in the recording.
      #: () -> Integer
      def lost = @segments.sum { |segment| segment.boot_number("lost") }

      # Features without a load: something loads them in a way that is not watched. A program may also add to
      # $LOADED_FEATURES itself, so a few are no loss.
      #: () -> Integer
      def unwatched
        @unwatched ||= begin
          added = grown("features")
          gone = added - nodes.count { |node| FEATURES.include?(node.row.kind) && node.loaded? } - lost
          gone > [FEW, added * FEW_OF_ALL].max ? gone : 0
        end
      end

      # Were file-system calls recorded?
      #: () -> bool
      def calls? = @segments.any?(&:syscall_rows?)

      # What caches of compiled code and data said of the boot's files.
      #: () -> Array[Cached::Row]
      def caches = @caches ||= Cached.rows(nodes)

      # Did most files come from a cache?
      #: () -> bool
      def warm? = caches.sum(&:hits) > caches.sum(&:misses)

      # Was bootsnap's compile cache loaded? Old versions of bootsnap don't say which files came from it.
      #: () -> bool
      def bootsnap? = nodes.any? { |node| node.row.path.include?("/bootsnap/compile_cache/iseq") }

      # The part of the boot that each owner's code took itself, the most first: the start of Ruby, RubyGems, Bundler,
      # Rails, gems, the standard library, the application.
      #: () -> Array[Owners::Row]
      def parts = @parts ||= @owners.parts(self)

      # The same by gem.
      #: () -> Array[Owners::Row]
      def gems = @gems ||= @owners.gems(nodes)

      # Files and gems that were never used afterwards.
      #: () -> Uses
      def uses = @uses ||= Uses.new(self, @all)

      # Which code asks for which file.
      #: () -> Requirers
      def requirers = @requirers ||= Requirers.new(self)

      # What to do, the largest predicted saving first.
      #: () -> Array[Advice]
      def advice = @advice ||= Advising.new(self).all

      # Is it of the thread that boots? Loads of other threads run beside it.
      #: (Node) -> bool
      def main?(node) = node.row.thread == main_thread

      private

      # A figure of all that the main thread loaded.
      def of_loads(figure) = roots.select { |node| main?(node) }.sum { |node| node.total[figure] }

      def main_thread
        @main_thread ||= @segments.flat_map(&:loads).group_by(&:thread).max_by { |_, rows| rows.size }&.first
      end

      def cache_figures
        return { cache_hits: nil, cache_misses: nil } if caches.empty?

        { cache_hits: caches.sum(&:hits), cache_misses: caches.sum(&:misses) }
      end

      def of_boot(segment) = segment.loads.select { |load| of_boot?(segment, load) }

      def of_boot?(segment, load)
        at = segment.boot_sizes("booted")["at_ns"]
        load.begun.zero? && (at.nil? || load.at_ns <= at)
      end

      def elapsed(segment)
        sizes = %w[booted end].map { |moment| segment.boot_sizes(moment) }.find(&:any?)
        sizes ? sizes["at_ns"] : segment.loads.map { |load| load.at_ns + load.wall_ns }.max.to_i
      end

      # An exec begins to count anew.
      def grown(name)
        @segments.sum do |segment|
          [sizes_after(segment).fetch(name, 0) - segment.boot_sizes("start").fetch(name, 0), 0].max
        end
      end

      def sizes_after(segment)
        %w[booted end start].map { |moment| segment.boot_sizes(moment) }.find(&:any?) || {}
      end

      def all_calls
        @all_calls ||= @segments.sum do |segment|
          until_ns = elapsed(segment)
          count = 0
          segment.each_syscall { |call| count += 1 if call.at_ns.nil? || call.at_ns <= until_ns }
          count
        end
      end

      # Calls by the innermost load of their thread at their time.
      def calls(segment)
        segment.syscall_rows? ? Calls.of(segment) : {}
      end
    end
  end
end

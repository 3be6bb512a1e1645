# frozen_string_literal: true

require_relative "../errors" unless defined?(Pitwall::Error)

module Pitwall
  # How many objects a block allocates, or how many bytes, and where: what the assertions of `pitwall/minitest` and the matchers
  # of `pitwall/rspec` hold against a limit. Counted, not timed: the same on every machine with the same Ruby and the same gems.
  module Budget
    # count: the least of all runs; runs: of each; unit: "objects" or "bytes"; sites: where a block allocated that may run only once.
    Measured = Struct.new(:count, :runs, :unit, :sites)
    # Where a block allocates: path and line ("" and 0: nowhere in Ruby), class name, how many objects, their bytes.
    Site = Struct.new(:path, :line, :class_name, :count, :bytes)
    RUNS = 3
    WARMUP = 1
    # Sites in a message.
    TOP = 5
    OTHERS = "(VM internal)"
    private_constant :RUNS, :WARMUP, :TOP, :OTHERS

    class << self
      # Objects that a block allocates, those of Ruby itself included (method caches, arguments…). The block runs `warmup` times
      # first, as what it loads and caches is not allocated again, then `runs` times; the least counts, because threads and
      # finalizers can only add. The garbage collector is off meanwhile: its runs come when they come.
      # @raise [UsageError] a number of runs that can't be
      #: (?runs: Integer, ?warmup: Integer) { () -> void } -> Measured
      def objects(runs: RUNS, warmup: WARMUP, &block)
        return objects_once(&block) if once?(runs, warmup)

        measured("objects", runs, warmup) { quietly { count { yield } } }
      end

      # Bytes of the objects that a block allocates: what ObjectSpace.memsize_of says of each when the block ends, its slot
      # and what it holds by malloc. Objects that Ruby hides (method caches, nodes) are not among them.
      # @raise [UsageError] a number of runs that can't be
      #: (?runs: Integer, ?warmup: Integer) { () -> void } -> Measured
      def bytes(runs: RUNS, warmup: WARMUP)
        found = nil
        measured = measured("bytes", runs, warmup) { (found = sites { yield }).sum(&:bytes) }
        measured.sites = found if once?(runs, warmup)
        measured
      end

      # Where the block allocates, most objects first, as ObjectSpace.trace_object_allocations sees it. Runs it once.
      #: () { () -> void } -> Array[Site]
      def sites
        require "objspace"
        found = {}
        quietly do
          ObjectSpace.trace_object_allocations_clear
          ObjectSpace.trace_object_allocations { yield }
          ObjectSpace.each_object { |object| enter(found, object) if ObjectSpace.allocation_generation(object) }
          ObjectSpace.trace_object_allocations_clear
        end
        found.values.sort_by { |site| [-site.count, -site.bytes, site.path, site.line] }
      end

      # What to say of a block that went over its budget; runs it once more, if it may.
      #: (Integer, Measured) { () -> void } -> String
      def exceeded(max, measured, &block)
        bytes = measured.unit == "bytes"
        head = "Expected at most #{number(max)} #{measured.unit} to be allocated, but it was #{number(measured.count)}#{" (the least of #{measured.runs.size} runs)" if measured.runs.size > 1}."
        rows = (measured.sites || sites(&block)).dup
        rows << Site.new("", 0, OTHERS, measured.count - rows.sum(&:count), 0) if !bytes && rows.sum(&:count) < measured.count
        ranked = rows.sort_by { |site| -(bytes ? site.bytes : site.count) }
        [head, *table(ranked.first(TOP), bytes), *rest(ranked.drop(TOP), measured.unit, bytes)].join("\n")
      end

      # @raise [UsageError] when it is no number of things
      #: (String, untyped) -> Integer
      def limit(name, value)
        return value if value.is_a?(Integer) && value >= 0

        raise UsageError, "#{name} #{value.inspect}: must be an Integer, 0 or more"
      end

      # "1234567" → "1,234,567"
      #: (Integer) -> String
      def number(count) = count.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")

      private

      def once?(runs, warmup) = runs == 1 && warmup == 0

      def count
        before = GC.stat(:total_allocated_objects)
        yield
        GC.stat(:total_allocated_objects) - before
      end

      # Tracing allocates nothing that Ruby counts; what the calls here cache, the first, empty round does.
      def objects_once(&block)
        counted = found = nil
        [-> {}, block].each { |work| found = sites { counted = count(&work) } }
        Measured.new(counted, [counted], "objects", found)
      end

      def measured(unit, runs, warmup)
        limit("warmup", warmup)
        raise UsageError, "runs #{runs.inspect}: must be an Integer, 1 or more" unless runs.is_a?(Integer) && runs >= 1

        warmup.times { yield }
        counts = Array.new(runs) { yield }
        Measured.new(counts.min, counts, unit)
      end

      def quietly
        was_off = GC.disable
        yield
      ensure
        GC.enable unless was_off
      end

      # Objects need not have the methods of Object.
      def enter(found, object)
        path = ObjectSpace.allocation_sourcefile(object) || ""
        line = ObjectSpace.allocation_sourceline(object) || 0
        name = Module.instance_method(:name).bind_call(Kernel.instance_method(:class).bind_call(object)) || "(anonymous class)"
        site = found[[path, line, name]] ||= Site.new(path, line, name, 0, 0)
        site.count += 1
        site.bytes += ObjectSpace.memsize_of(object)
      end

      def table(rows, bytes)
        counts = rows.map { |site| number(bytes ? site.bytes : site.count) }
        wide = counts.map(&:size).max.to_i
        names = rows.map { |site| site.class_name.size }.max.to_i
        rows.zip(counts).map { |site, count| "  #{count.rjust(wide)}  #{site.class_name.ljust(names)}  #{place(site)}".rstrip }
      end

      def rest(rows, unit, bytes)
        rows.empty? ? [] : ["  and #{number(rows.sum { |site| bytes ? site.bytes : site.count })} #{unit} from #{number(rows.size)} more places"]
      end

      def place(site) = site.path.empty? ? "" : "#{site.path.delete_prefix("#{Dir.pwd}/")}:#{site.line}"
    end
  end
end

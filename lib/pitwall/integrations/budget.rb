# frozen_string_literal: true

require_relative "../errors" unless defined?(Pitwall::Error)

module Pitwall
  # Counts the objects or bytes that a block allocates, and finds their places. The assertions of `pitwall/minitest` and
  # the matchers of `pitwall/rspec` compare the count with a limit. Counts are the same on every machine with the same
  # Ruby and the same gems; times are not.
  module Budget
    # count: the lowest count of all runs
    # runs:  the count of each run
    # unit:  "objects" or "bytes"
    # sites: Array of Site, for a block that may run only once; otherwise nil
    Measured = Struct.new(:count, :runs, :unit, :sites)
    # A place that allocates.
    #
    # path, line: of the Ruby code; "" and 0 if there is none
    # class_name: "String"
    # count:      number of objects
    # bytes:      their bytes
    Site = Struct.new(:path, :line, :class_name, :count, :bytes)
    RUNS = 3
    WARMUP = 1
    # Number of sites in a message.
    TOP = 5
    VM_INTERNAL = "(VM internal)"
    private_constant :RUNS, :WARMUP, :TOP, :VM_INTERNAL

    class << self
      # Counts the objects that a block allocates. Objects of Ruby itself (method caches, arguments…) count as well. The
      # block runs `warmup` times first, because objects that it loads and caches are allocated once. Then it runs
      # `runs` times, and the lowest count is the result: other threads and finalizers can only add objects. The garbage
      # collector is off meanwhile, because collections do not come at the same point in each run.
      # @raise [UsageError] an impossible number of runs
      #: (?runs: Integer, ?warmup: Integer) { () -> void } -> Measured
      def objects(runs: RUNS, warmup: WARMUP, &block)
        return objects_once(&block) if once?(runs, warmup)

        measured("objects", runs, warmup) { quietly { count { yield } } }
      end

      # Adds up the bytes of the objects that a block allocates: ObjectSpace.memsize_of of each object at the end
      # of the block, which is its slot and its memory from malloc. Objects that Ruby hides (method caches,
      # nodes) are not counted.
      # @raise [UsageError] an impossible number of runs
      #: (?runs: Integer, ?warmup: Integer) { () -> void } -> Measured
      def bytes(runs: RUNS, warmup: WARMUP)
        found = nil
        measured = measured("bytes", runs, warmup) { (found = sites { yield }).sum(&:bytes) }
        measured.sites = found if once?(runs, warmup)
        measured
      end

      # The places that allocate in the block, by ObjectSpace.trace_object_allocations. The place with most objects is
      # first. Runs the block once.
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

      # The message for a block that allocates too much. Runs the block once more to find the places, unless it
      # may run only once.
      #: (Integer, Measured) { () -> void } -> String
      def exceeded(max, measured, &block)
        bytes = measured.unit == "bytes"
        runs = " (the least of #{measured.runs.size} runs)" if measured.runs.size > 1
        head = "Expected at most #{number(max)} #{measured.unit} to be allocated, " \
               "but it was #{number(measured.count)}#{runs}."
        rows = (measured.sites || sites(&block)).dup
        rest = measured.count - rows.sum(&:count)
        rows << Site.new("", 0, VM_INTERNAL, rest, 0) if !bytes && rest.positive?
        ranked = rows.sort_by { |site| -(bytes ? site.bytes : site.count) }
        [head, *table(ranked.first(TOP), bytes), *remaining(ranked.drop(TOP), measured.unit, bytes)].join("\n")
      end

      # Checks a limit.
      # @raise [UsageError] the value is no Integer from 0 on
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

      # Tracing itself allocates no objects that Ruby counts. The first round, with an empty block, fills the caches of
      # the calls in this method.
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

      # An object may be a BasicObject, so its class is found by Kernel's own method.
      def enter(found, object)
        path = ObjectSpace.allocation_sourcefile(object) || ""
        line = ObjectSpace.allocation_sourceline(object) || 0
        klass = Kernel.instance_method(:class).bind_call(object)
        name = Module.instance_method(:name).bind_call(klass) || "(anonymous class)"
        site = found[[path, line, name]] ||= Site.new(path, line, name, 0, 0)
        site.count += 1
        site.bytes += ObjectSpace.memsize_of(object)
      end

      def table(rows, bytes)
        counts = rows.map { |site| number(bytes ? site.bytes : site.count) }
        count_width = counts.map(&:size).max.to_i
        name_width = rows.map { |site| site.class_name.size }.max.to_i
        rows.zip(counts).map do |site, count|
          "  #{count.rjust(count_width)}  #{site.class_name.ljust(name_width)}  #{place(site)}".rstrip
        end
      end

      def remaining(rows, unit, bytes)
        return [] if rows.empty?

        sum = rows.sum { |site| bytes ? site.bytes : site.count }
        ["  and #{number(sum)} #{unit} from #{number(rows.size)} more places"]
      end

      def place(site) = site.path.empty? ? "" : "#{site.path.delete_prefix("#{Dir.pwd}/")}:#{site.line}"
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/import/figures"
require "pitwall/record/import/values"

module Pitwall
  module Record
    module Import
      # One process of a profile whose samples have stacks, labels and figures, and no order in time (pprof, OTLP). A
      # sample becomes a row, a site of objects or exact calls.
      # @api private
      class LabelledSegment
        include Values

        # Labels by which tools name threads, and other labels that are not the program's own.
        NAMES = %w[thread thread_name thread.name].freeze
        IDS = ["thread_id", "thread id", "thread.id", "tid", "native_tid"].freeze
        PIDS = %w[pid process_id process.pid].freeze
        STATES = %w[running gvl blocked unknown off-cpu].freeze
        OWN = [*NAMES, *IDS, *PIDS, "state", "class"].freeze
        UNKNOWN = 3
        private_constant :NAMES, :IDS, :STATES, :OWN, :UNKNOWN

        # The number of a sample's process, 0 unknown.
        #: (Hash[String, untyped]) -> Integer
        def self.pid(labels)
          name = PIDS.find { |key| labels.key?(key) }
          name ? labels[name].to_i.clamp(0, 1 << 59) : 0
        end

        # @param places [#[]] what a stack consists of → its frames from the outermost function to the innermost inlined
        #   one: name, path, first line, line, kind
        #: (SegmentWriter, Figures, untyped) -> void
        def initialize(segment, figures, places)
          @segment = segment
          @figures = figures
          @frames = Hash.new do |frames, key|
            frames[key] = places[key].map do |name, path, first, line, kind|
              @objects[path] = true if kind == Frame::NATIVE
              [segment.frame(name, path, first, kind), line]
            end
          end
          @objects = {}
          @nodes = {}
          @threads = {}
          @thread_names = {}
          @calls = {}
        end

        # @param stack [Array] keys of places, from the root to the leaf
        # @param weights [Hash{Symbol => Integer}] of Figures#of
        #: (Array[untyped], Hash[String, untyped], Hash[Symbol, Integer]) -> void
        def add(stack, labels, weights) = add_to(node(stack), labels, weights)

        # The same for a stack that has a number in the file.
        # @yield once for each number: the keys of places
        #: (Integer, Hash[String, untyped], Hash[Symbol, Integer]) { () -> Array[untyped] } -> void
        def add_numbered(number, labels, weights) = add_to(@nodes[number] ||= node(yield), labels, weights)

        # @param stats [Hash] of SegmentWriter#close
        # @param objects [Hash{String => String}] shared objects of which frames may be: path → build id
        #: (Hash[String, untyped], ?objects: Hash[String, String]) -> void
        def close(stats, objects: {})
          objects.slice(*@objects.keys).each { |path, build_id| @segment.shared_object(path, build_id) }
          @calls.each { |(thread, node), sums| @segment.call(thread: thread, node: node, **sums) }
          if @figures.calls?
            @segment.trace(%w[cpu objects bytes].to_h { |name| [name, @figures.weights.include?(name.to_sym)] })
          end
          @segment.close(stats)
        end

        private

        def node(stack)
          stack.inject(0) do |parent, key|
            @frames[key].inject(parent) { |above, (frame, line)| @segment.node(above, frame, line) }
          end
        end

        def add_to(node, labels, weights)
          return add_calls(node, labels, weights) if calls?(weights)

          sites = Figures.of_site(weights)
          @segment.site(node: node, class_name: labels["class"].to_s, **sites) if sites.any?
          times = weights.slice(:captures, :cpu, :wall)
          return if times.empty?

          @segment.row(thread: thread(labels), node: node, state: STATES.index(labels["state"]) || UNKNOWN,
                       labels: label_set(labels), captures: 0, **times)
        end

        # Of a profile of calls only, all is calls. Else the samples with calls are.
        def calls?(weights)
          @figures.calls? && (!@figures.sampled? || weights.key?(:calls) || weights.key?(:wait))
        end

        def add_calls(node, labels, weights)
          sums = @calls[[thread(labels), node]] ||= Hash.new(0)
          weights.slice(:calls, :wall, :cpu, :wait, :objects, :bytes).each { |name, value| sums[name] += value }
        end

        # The thread's number: its own, or the next that is free. A thread without a name or number is thread 1.
        def thread(labels)
          name = NAMES.filter_map { |key| labels[key] }.first.to_s
          number = IDS.filter_map { |key| id(labels[key]) }.first
          @threads[[name, number]] ||= begin
            number = free_number if number.nil? || @thread_names.key?(number)
            @thread_names[number] = name
            @segment.thread(number, name)
            number
          end
        end

        def free_number
          @free = (@free || 0) + 1
          @free += 1 while @thread_names.key?(@free)
          @free
        end

        def label_set(labels)
          (@label_sets ||= {})[labels] ||= begin
            own = labels.reject { |name, value| OWN.include?(name) || name.empty? || value.to_s.empty? }
            @segment.label_set(own.transform_values(&:to_s))
          end
        end
      end
      private_constant :LabelledSegment
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/import/call_graph"
require "pitwall/record/import/call_paths"
require "pitwall/record/import/callgrind/events"
require "pitwall/record/import/callgrind/profile_text"
require "pitwall/record/import/format"

module Pitwall
  module Record
    module Import
      # Callgrind's format: valgrind's callgrind, ruby-prof's CallTreePrinter, Xdebug, converters for KCachegrind, and
      # Pitwall's own export. Functions have costs by line, and calls to other functions with their number and their
      # inclusive cost. The format has no call paths, so they are estimated (CallTreeEstimate).
      # Format: https://valgrind.org/docs/manual/cl-format.html
      # @api private
      class Callgrind < Format
        # What the beginning of a file must have.
        EVENTS = /^events:[ \t]*\S/.freeze
        BODY = /^(?:fn|fl)=/.freeze
        # ruby-prof writes classes as paths: "Shop/Cart::total", "<Class/Shop>::open", and marks some by * or ^.
        SINGLETON = /\A<(?:Class|Module|Object)(?:\/|::)(.+?)>\z/.freeze
        # Functions whose names tell the format nothing.
        NAMELESS = "???"
        private_constant :EVENTS, :BODY, :SINGLETON, :NAMELESS

        class << self
          def title = "callgrind"

          def fits?(source)
            text = source.beginning
            text.match?(EVENTS) && text.match?(BODY)
          end
        end

        def write(writer)
          @text = ProfileText.new(@source)
          @text.read
          @events = Events.new(@text.events, @text.headers, type: @type)
          @warnings.concat(@events.warnings)
          @warnings << CallPaths::WARNING
          @paths = CallPaths.new(graph)
          @segment = segment(writer, sampled: @events.sampled?, program: program, pid: pid, notes: notes,
                                     paths: CallPaths::ESTIMATED)
          @segment.thread(THREAD, "")
          write_paths
          @segment.trace(@events.trace) if @events.traced?
          @segment.close
        end

        private

        def notes = [*@events.notes, *@paths.notes]

        def program
          command = @text.headers["cmd"].to_s.strip
          command unless command.empty?
        end

        def pid
          found = id(@text.headers["pid"].to_s.strip)
          found if found&.positive?
        end

        # The text's figures, those that were chosen, as a graph.
        def graph
          graph = CallGraph.new(@events.size)
          @text.costs.each { |(function, line), costs| graph.own(function, line, @events.of(costs)) }
          @text.calls.each do |(caller, callee), (line, calls, costs)|
            graph.edge(caller, callee, line, @events.of(costs), calls: @events.counts_calls? ? calls : 0)
          end
          graph
        end

        def write_paths
          frames = @text.functions.map { |function| frame(*function) }
          sums = Hash.new { |found, node| found[node] = Hash.new(0) }
          @paths.each(@segment, frames) do |node, values, calls|
            weights = @events.weights(values, calls)
            next add(node, weights) unless @events.traced?

            weights.each { |name, value| sums[node][name] += value }
          end
          sums.each { |node, weights| @segment.call(thread: THREAD, node: node, **weights) }
        end

        # Samples, and objects.
        def add(node, weights)
          rows = weights.slice(:captures, :wall, :cpu)
          sites = weights.slice(:objects, :bytes, :gc).transform_keys({ objects: :count, gc: :gc_ns })
          @segment.row(thread: THREAD, node: node, state: UNKNOWN, captures: 0, **rows) if rows.any?
          @segment.site(node: node, **sites) if sites.any?
        end

        # @param object [String] the shared object, "" where the file has none
        def frame(name, file, object)
          file = "" if file == NAMELESS || file.start_with?("(")
          return @segment.frame(name, object == NAMELESS ? file : object, 0, Frame::NATIVE) unless object.empty?

          name = ruby_name(name) if @events.ruby_prof?
          # ruby-prof expands "<internal:kernel>" as if it were a file of the folder.
          file = file[/<internal:.*\z/] || file
          @segment.frame(name, file, 0, kind(name, file))
        end

        # "Shop/Cart::total" → "Shop::Cart#total"; "<Class/Shop>::open" → "Shop.open"
        def ruby_name(name)
          name = name.delete_suffix("*").delete_suffix("^") if name.match?(/\w[?!=]?[*^]\z/)
          owner, separator, method = name.rpartition("::")
          return name if separator.empty?

          singleton = SINGLETON.match(owner)
          return "#{singleton[1].gsub("/", "::")}.#{method}" if singleton

          "#{owner.gsub("/", "::")}##{method}"
        end
      end
      private_constant :Callgrind
    end
  end
end

# frozen_string_literal: true

require "pitwall/analyse/tree/call_edges"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # Callgrind's profile format (version 1), for KCachegrind and callgrind_annotate.
      # The profile has each function's own cost, and for each called function the number of calls and their cost.
      # The format needs a number of calls. Samples don't count calls, so the number of call paths is written instead.
      # Lines are lines of definitions, because calls are counted by method.
      # Format: https://valgrind.org/docs/manual/cl-format.html
      class Callgrind < Format
        # Weight → event. The format has no units, so the events' names contain them.
        EVENTS = { wall: "Wall_ns", cpu: "CPU_ns", wait: "Wait_ns", calls: "Calls", objects: "Objects", bytes: "Bytes",
                   captures: "Captures", gc: "GC_ns" }.freeze
        private_constant :EVENTS

        #: () -> bool
        def self.folds? = true

        #: (Analyse::Report) -> void
        def initialize(report)
          super()
          @program = report.summary.programs.join(", ")
          @report = report
          @tree = report.tree
          @weights = [report.weight, *(@tree.weights & %i[wall cpu objects bytes])].uniq
        end

        # Writes the profile.
        # @param out [#<<] receives the lines
        #: (untyped) -> void
        def write(out)
          edges = Analyse::CallEdges.new(@tree, @weights)
          out << "# callgrind format\nversion: 1\ncreator: pitwall\n"
          out << "cmd: #{safe(@program)}\n" unless @program.empty?
          out << "desc: Calls: #{@tree.weights.include?(:calls) ? "counted" : "number of call paths"}\n"
          out << "positions: line\n"
          out << "events: #{@weights.map { |weight| EVENTS.fetch(weight) }.join(" ")}\n"
          out << "summary: #{@weights.map { |weight| @tree.total(weight) }.join(" ")}\n"
          (1...@tree.methods.size).each do |method|
            below = edges.from(method).reject do |_, (_, *inclusive)|
              inclusive.all?(&:zero?) && !@tree.weights.include?(:calls)
            end
            next unless edges.own.fetch(method, []).any?(&:positive?) || below.any?

            out << "\n" << position("", method) << cost(method, edges.own.fetch(method, [0] * @weights.size))
            below.each { |callee, (calls, *inclusive)| out << called(callee, calls) << cost(method, inclusive) }
          end
        end

        private

        def position(prefix, method)
          info = @tree.methods[method]
          file = info.path.empty? ? "(#{info.kind == 1 ? "C" : "none"})" : info.path
          "#{prefix.empty? ? "fl" : "cfi"}=#{safe(file)}\n#{prefix}fn=#{safe(name(method))}\n"
        end

        # A method's name. Methods with the same name in the same file get their line as a suffix.
        def name(method)
          @names ||= @tree.methods.group_by { |info| [info.name, info.path] }
          info = @tree.methods[method]
          @names.fetch([info.name, info.path]).size > 1 ? "#{info.name}:#{info.line}" : info.name
        end

        # A "calls" line. The count is at least 1, because readers ignore 0 calls. A frame that was open when tracing
        # began has 0 calls.
        def called(callee, calls)
          "#{position("c", callee)}calls=#{[calls, 1].max} #{line(callee)}\n"
        end

        def cost(method, values) = "#{line(method)} #{values.join(" ")}\n"

        # Line of a method's definition; at least 1 where the method has a file. A file's top-level code has no
        # definition, but readers that print the file need a line.
        def line(method) = @tree.methods[method].then { |info| info.path.empty? ? info.line : [info.line, 1].max }

        # A name in one line. A number in parentheses at its beginning would be an abbreviation in the format.
        def safe(text)
          text = text.gsub(/[[:cntrl:]]/, " ").strip
          text = "_" if text.empty?
          text.start_with?("(") && text.match?(/\A\(\d+\)/) ? "_#{text}" : text
        end
      end
    end
  end
end

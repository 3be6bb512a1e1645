# frozen_string_literal: true

require "pitwall/analyse/tree/call_edges"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # Callgrind's profile format (version 1), as KCachegrind and callgrind_annotate read it: for each function its own cost,
      # and for each function it calls how often and at what inclusive cost. The format has no word for "not counted": of samples the
      # ways that lead there stand for calls. Lines are those of definitions: calls are counted by method. Format: https://valgrind.org/docs/manual/cl-format.html
      class Callgrind < Format
        # Events by weight; units in their names, as the format has none.
        EVENTS = { wall: "Wall_ns", cpu: "CPU_ns", wait: "Wait_ns", calls: "Calls", objects: "Objects", bytes: "Bytes", captures: "Captures", gc: "GC_ns" }.freeze
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

        # @param out [#<<] gets the lines
        #: (untyped) -> void
        def write(out)
          edges = Analyse::CallEdges.new(@tree, @weights)
          out << "# callgrind format\nversion: 1\ncreator: pitwall\n"
          out << "cmd: #{safe(@program)}\n" unless @program.empty?
          out << "positions: line\n"
          out << "events: #{@weights.map { |weight| EVENTS.fetch(weight) }.join(" ")}\n"
          out << "summary: #{@weights.map { |weight| @tree.total(weight) }.join(" ")}\n"
          (1...@tree.methods.size).each do |method|
            below = edges.from(method).reject { |_, (_, *inclusive)| inclusive.all?(&:zero?) && !@tree.weights.include?(:calls) }
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

        # Two methods of one name in one file, by their lines.
        def name(method)
          @names ||= @tree.methods.group_by { |info| [info.name, info.path] }
          info = @tree.methods[method]
          @names.fetch([info.name, info.path]).size > 1 ? "#{info.name}:#{info.line}" : info.name
        end

        # Zero calls (of a frame that was open when tracing began) are no call to readers of the format.
        def called(callee, calls)
          "#{position("c", callee)}calls=#{[calls, 1].max} #{line(callee)}\n"
        end

        def cost(method, values) = "#{line(method)} #{values.join(" ")}\n"

        # A file's code has no definition, and readers that print the file need a line of it.
        def line(method) = @tree.methods[method].then { |info| info.path.empty? ? info.line : [info.line, 1].max }

        # A parenthesis at the start would be an abbreviation's number.
        def safe(text)
          text = text.gsub(/[[:cntrl:]]/, " ").strip
          text = "_" if text.empty?
          text.start_with?("(") && text.match?(/\A\(\d+\)/) ? "_#{text}" : text
        end
      end
    end
  end
end

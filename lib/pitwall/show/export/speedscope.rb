# frozen_string_literal: true

require "json"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # speedscope's JSON format: one "sampled" profile for each thread, ordered by time.
      # Written piece by piece: expanded stacks take many times the recording's size.
      # Format: https://www.speedscope.app/file-format-schema.json
      class Speedscope < Format
        SCHEMA = "https://www.speedscope.app/file-format-schema.json"
        # The weights in the order of their columns in Record::Rows#each, after thread, state and node.
        WEIGHTS = %i[wall cpu captures].freeze
        private_constant :WEIGHTS

        #: () -> bool
        def self.timeline? = true

        # @param weight [Symbol] :wall, :cpu or :captures
        # @param selection [Analyse::Selection] the exported threads, states and labels
        #: (Array[Record::Segment], ?Symbol, selection: Analyse::Selection) -> void
        def initialize(segments, weight = :wall, selection:)
          super()
          @segments = segments.select { |segment| selection.segment?(segment) }
          @weight = weight
          @selection = selection
          @name = @segments.filter_map { |segment| segment.header.program }.uniq.join(", ")
          @frames = []
          @numbers = {}
        end

        # Writes the JSON text.
        # @param out [#<<] receives the text
        # @raise [BadRecording] when the recording's file was changed since it was read
        #: (untyped) -> void
        def write(out)
          out << '{"$schema":' << SCHEMA.to_json << ',"name":' << @name.to_json
          out << ',"exporter":"pitwall","activeProfileIndex":0,"profiles":['
          first = true
          @segments.each do |segment|
            frames = frame_numbers(segment)
            timelines(segment).sort_by { |thread, line| [-line.last.sum, thread] }.each do |thread, (nodes, weights)|
              out << "," unless first
              first = false
              profile(segment, segment.thread(thread), nodes, weights, frames, out)
            end
          end
          out << '],"shared":{"frames":' << JSON.generate(@frames) << "}}\n"
        end

        private

        # Thread → its nodes in the order of time, and the weight of each. Consecutive equal nodes are merged.
        def timelines(segment)
          lines = {}
          column = WEIGHTS.index(@weight)
          segment.each_rows do |rows|
            rows.each do |thread, state, node, wall, cpu, captures, label|
              add(lines, segment, thread, state, node, [wall, cpu, captures][column], label)
            end
          end
          segment.open_rows.each do |thread, state, node, wall, cpu, label|
            add(lines, segment, thread, state, node, [wall, cpu, 0][column], label)
          end
          lines
        end

        def add(lines, segment, thread, state, node, weight, label)
          return if weight.zero? || node == segment.gap || !selected?(segment, thread, state, label)

          nodes, weights = (lines[thread] ||= [[], []])
          if nodes.last == node
            weights[-1] += weight
          else
            nodes << node
            weights << weight
          end
        end

        def selected?(segment, thread, state, label)
          @selected ||= {}
          @selected.fetch([segment.object_id, thread, state, label]) do |key|
            @selected[key] = (@selection.state.nil? || state == @selection.state) &&
                             @selection.labels?(segment, label) &&
                             (@selection.thread.nil? || @selection.thread?(segment, thread))
          end
        end

        def profile(segment, info, nodes, weights, frames, out)
          unit = @weight == :captures ? 1 : segment.unit_ns
          name = @weight == :captures ? "none" : "nanoseconds"
          title = [segment.header.program, segment.header.pid, info.title].compact.join(" ")
          out << '{"type":"sampled","name":' << title.to_json << ',"unit":' << name.to_json
          out << ',"startValue":0,"endValue":' << (weights.sum * unit).to_s << ',"samples":['
          stacks = {}
          nodes.each_with_index do |node, at|
            out << "," if at.positive?
            out << (stacks[node] ||= stack(segment, node, frames))
          end
          out << '],"weights":' << JSON.generate(weights.map { |weight| weight * unit }) << "}"
        end

        # A node's stack as JSON: the frames' numbers, the root first: "[0,4,7]".
        def stack(segment, node, frames)
          path = []
          while node.positive?
            path << frames[segment.node_frames[node]]
            node = segment.parents[node]
          end
          "[#{path.reverse!.join(",")}]"
        end

        def frame_numbers(segment)
          Hash.new do |known, id|
            frame = segment.frames[id] || Record::Frame.unresolved(id)
            known[id] = @numbers[[frame.name, frame.path, frame.first_line]] ||= begin
              @frames << frame(frame)
              @frames.size - 1
            end
          end
        end

        def frame(frame)
          object = { "name" => frame.name }
          object["file"] = frame.path unless frame.path.empty?
          object["line"] = frame.first_line if frame.first_line.positive?
          object
        end
      end
    end
  end
end

# frozen_string_literal: true

require "json"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # speedscope's own JSON (https://www.speedscope.app/file-format-schema.json): one "sampled" profile a thread, in time
      # order. Written piece by piece: a recording's stacks take many times its size when each is spelled out.
      class Speedscope < Format
        SCHEMA = "https://www.speedscope.app/file-format-schema.json"
        # A row's column in Record::Rows#each, after thread, state and node.
        WEIGHTS = %i[wall cpu captures].freeze
        private_constant :WEIGHTS

        #: () -> bool
        def self.timeline? = true

        # @param selection [Analyse::Selection]
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

        # @param out [#<<]
        # @raise [BadRecording] when the file was changed since it was read
        #: (untyped) -> void
        def write(out)
          out << '{"$schema":' << SCHEMA.to_json << ',"name":' << @name.to_json << ',"exporter":"pitwall","activeProfileIndex":0,"profiles":['
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

        # By thread: the nodes it was at, in order, and the weight of each stay; equal neighbours are one stay.
        def timelines(segment)
          lines = {}
          column = WEIGHTS.index(@weight)
          segment.each_rows do |rows|
            rows.each { |thread, state, node, wall, cpu, captures, label| stay(lines, segment, thread, state, node, [wall, cpu, captures][column], label) }
          end
          segment.open_rows.each { |thread, state, node, wall, cpu, label| stay(lines, segment, thread, state, node, [wall, cpu, 0][column], label) }
          lines
        end

        def stay(lines, segment, thread, state, node, weight, label)
          return if weight.zero? || !wanted?(segment, thread, state, label)

          nodes, weights = (lines[thread] ||= [[], []])
          if nodes.last == node
            weights[-1] += weight
          else
            nodes << node
            weights << weight
          end
        end

        def wanted?(segment, thread, state, label)
          @wanted ||= {}
          @wanted.fetch([segment.object_id, thread, state, label]) do |key|
            @wanted[key] = (@selection.state.nil? || state == @selection.state) && @selection.labels?(segment, label) &&
                           (@selection.thread.nil? || @selection.thread?(segment, thread))
          end
        end

        def profile(segment, info, nodes, weights, frames, out)
          unit = @weight == :captures ? 1 : segment.unit_ns
          title = [segment.header.program, segment.header.pid, info.title].compact.join(" ")
          out << '{"type":"sampled","name":' << title.to_json << ',"unit":' << (@weight == :captures ? "none" : "nanoseconds").to_json
          out << ',"startValue":0,"endValue":' << (weights.sum * unit).to_s << ',"samples":['
          stacks = {}
          nodes.each_with_index do |node, at|
            out << "," if at.positive?
            out << (stacks[node] ||= stack(segment, node, frames))
          end
          out << '],"weights":' << JSON.generate(weights.map { |weight| weight * unit }) << "}"
        end

        # "[0,4,7]", the root first.
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

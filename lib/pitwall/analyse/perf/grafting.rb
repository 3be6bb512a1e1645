# frozen_string_literal: true

require "pitwall/record/frame"

module Pitwall
  module Analyse
    module Perf
      # Where perf's native frames begin below a stack of a recording.
      #
      # A stack without native frames keeps all its frames, and perf's come below. A stack with native frames (taken by
      # Pitwall's own unwinder) has such frames behind the innermost frame of the interpreter's loop, as perf's has.
      # Both stacks were taken at different moments, so they agree only at first. Native frames that both have stay
      # where they are, with the C methods between them. The others behind the innermost frame that is not native are
      # left out, and perf's come in their place. Frames that are not native always stay.
      class Grafting
        LOOP = "vm_exec_core"
        private_constant :LOOP

        #: (Record::Segment) -> void
        def initialize(segment)
          @segment = segment
        end

        # @param node [Integer] of the segment
        # @param tail [Array<#name, #path>] perf's frames below the interpreter's loop, the outermost first
        # @return [Array(Integer, Array)] the node that stays, and the frames to put below it
        #: (Integer, Array[untyped]) -> [Integer, Array[untyped]]
        def call(node, tail)
          inner = inner_nodes(node)
          kept, common = inner.empty? ? [node, 0] : agreement(inner, tail)
          [kept, tail.drop(common)]
        end

        private

        # Nodes behind the innermost loop, the outermost first; none where no frame there is native.
        def inner_nodes(node)
          found = []
          while node.positive?
            frame = @segment.frame(node)
            break if native?(frame) && frame.name == LOOP

            found.unshift(node)
            node = @segment.parents[node]
          end
          found.any? { |inner| native?(@segment.frame(inner)) } ? found : []
        end

        # Follows both stacks as long as they agree.
        def agreement(inner, tail)
          last = inner.rindex { |node| !native?(@segment.frame(node)) }
          kept, common = @segment.parents[inner.first], 0
          inner.each_with_index do |node, at|
            frame = @segment.frame(node)
            if !native?(frame) then kept = node
            elsif same?(frame, tail[common])
              kept = node
              common += 1
            elsif last && at < last then return [inner[last], common]
            else break
            end
          end
          [kept, common]
        end

        def native?(frame) = frame.kind == Record::Frame::NATIVE

        def same?(frame, other) = other && frame.name == other.name && frame.path == other.path
      end
    end
  end
end

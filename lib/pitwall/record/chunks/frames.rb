# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/frame"

module Pitwall
  module Record
    module Chunks
      # FRAM: methods, blocks and C functions. Nodes name a frame by its id, sometimes before its FRAM chunk.
      class Frames < Chunk
        # The id of the frame that stands for lost stacks. Ids in files are not negative.
        LOST = -1

        type "FRAM"
        limit :frames, 2_000_000
        # @return [Hash{Integer => Frame}] by id
        offers :frames

        def initialize(...)
          super
          @frames = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          count = columns.int
          ids, kinds, names, paths, lines =
            ["id", "kind", "name", "path", "first line"].map { |name| columns.column(count, name) }
          strings = table(Strings)
          strings.check([names.max, paths.max].max) if count.positive?
          take(:frames, count)
          count.times do |at|
            name, path = strings.fetch(names[at]), strings.fetch(paths[at])
            @frames[ids[at]] = Frame.new(ids[at], name, path, lines[at], kinds[at])
          end
        end

        # The frame for stacks that salvage lost.
        # @return [Integer] its id
        #: () -> Integer
        def lost_stack
          @frames[LOST] ||= Frame.new(LOST, "(lost stack)", "", 0, Frame::PITWALL)
          LOST
        end
      end
    end
  end
end

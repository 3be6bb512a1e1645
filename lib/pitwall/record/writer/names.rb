# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/writer/payload"

module Pitwall
  module Record
    class Writer
      # Strings, frames, nodes and label sets of a segment: each gets its id once, and is written once.
      # @api private
      class Names
        # Bytes of the longest name that is kept. A longer one is cut.
        LONGEST = 64 * 1024
        # Nodes and bytes that wait, at most, before they are written.
        NODES = 100_000
        BYTES = 1024 * 1024
        private_constant :LONGEST, :NODES, :BYTES

        # @param after [Array(Integer, Integer, Integer), nil] the next ids of strings, frames and nodes of a segment
        #   that is continued
        #: (Budget, ?after: [Integer, Integer, Integer]?) -> void
        def initialize(budget, after: nil)
          @budget = budget
          @next_string, @next_frame, @node_count = after || [1, 1, 1]
          @strings = { "" => 0 }
          @frames = {}
          @places = {}
          @nodes = {}
          @label_sets = { {} => 0 }
          clear
        end

        # Whether enough waits to be written.
        #: () -> bool
        def full? = @new_parents.size >= NODES || @bytes >= BYTES

        #: () -> bool
        def node?(id) = id.is_a?(Integer) && id.between?(0, @node_count - 1)

        # The id of a string. Bytes that are no UTF-8 are kept: the reader shows them in hexadecimal.
        #: (String) -> Integer
        def string(text)
          @strings[text] || begin
            text = text.byteslice(0, LONGEST) if text.bytesize > LONGEST
            @strings[text] || new_string(text.dup.freeze)
          end
        end

        #: (String, String, Integer, Integer) -> Integer
        def frame(name, path, first_line, kind)
          @frames[[name, path, first_line, kind]] ||= begin
            @budget.take(:frames, 1)
            id = @next_frame
            @next_frame += 1
            @new_frames << [id, kind, string(name), string(path), first_line]
            id
          end
        end

        # The id of the stack that consists of a node's stack and one more frame.
        #: (Integer, Integer, Integer) -> Integer
        def node(parent, frame, line)
          place = @places[line << 32 | frame] ||= @places.size
          # Both ids are below 2**24 by the reader's limits, so the key needs no object.
          @nodes[parent << 30 | place] ||= new_node(parent, frame, line)
        end

        #: (Hash[String, String]) -> Integer
        def label_set(labels)
          @label_sets[labels] ||= begin
            @budget.take(:labels, labels.size)
            labels.each { |name, value| @new_labels << [@label_sets.size, string(name), string(value)] }
            @label_sets.size
          end
        end

        # Labels were given: SAMP has a column for them.
        #: () -> bool
        def labels? = @label_sets.size > 1

        # The chunks of all that is new: names before what uses them.
        #: () -> Array[String]
        def chunks
          found = [*strings_chunk, *rows_chunk("FRAM", @new_frames), *nodes_chunk, *rows_chunk("LABL", @new_labels)]
          clear
          found
        end

        private

        def clear
          @new_strings, @new_frames, @new_labels = [], [], []
          @new_parents, @new_places, @new_lines = [], [], []
          @bytes = 0
        end

        def new_string(text)
          @budget.take(:strings, 1)
          @budget.take(:string_bytes, text.bytesize)
          @bytes += text.bytesize
          @new_strings << text
          @next_string += 1
          @strings[text] = @next_string - 1
        end

        def new_node(parent, frame, line)
          @budget.take(:nodes, 1)
          id = @node_count
          @node_count += 1
          @new_parents << id - parent
          @new_places << frame
          @new_lines << line
          id
        end

        def strings_chunk
          return if @new_strings.empty?

          sizes = Payload.ints([@next_string - @new_strings.size, @new_strings.size])
          Payload.chunk("STRS", sizes << Payload.column(@new_strings.map(&:bytesize)) << @new_strings.map(&:b).join)
        end

        def nodes_chunk
          return if @new_parents.empty?

          Payload.table("NODE", [@new_parents, @new_places, @new_lines], ints: [@node_count - @new_parents.size])
        end

        def rows_chunk(type, rows) = rows.empty? ? nil : Payload.table(type, rows.transpose)
      end
      private_constant :Names
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/messages"
require "pitwall/show/export"
require "pitwall/show/export/shared_objects"

module Pitwall
  module Show
    module Export
      class Otlp < Format
        # The tables that all profiles of a file share. Each entry is there once. Entry 0 of each table is empty and
        # means none. Stacks are handed out in batches, the other tables at the end.
        # @api private
        class Dictionary
          # Number of stacks that wait.
          BATCH = 4096
          # profile.frame.type by the kind of frame. A method in C is Ruby's, as its name and arguments are. What
          # Pitwall made up has no type.
          TYPES = { Record::Frame::RUBY => "ruby", Record::Frame::C => "ruby", Record::Frame::GC => "ruby",
                    Record::Frame::NATIVE => "native" }.freeze
          BUILD_ID = "process.executable.build_id.gnu"
          Messages = Record::Messages::Otlp
          private_constant :BATCH, :TYPES, :BUILD_ID, :Messages

          # @param tree [Analyse::CallTree] the stacks
          # @param segments [Array<Record::Segment>] whose shared objects have build ids
          # @yield [ProfilesDictionary] a part of the dictionary
          #: (Analyse::CallTree, Array[Record::Segment]) { (untyped) -> void } -> void
          def initialize(tree, segments, &hand_out)
            @tree = tree
            @hand_out = hand_out
            @objects = SharedObjects.new(segments)
            @strings = { "" => 0 }
            @functions, @mappings, @locations, @attributes, @links = {}, {}, {}, {}, {}
            @location_ids = {}
            # Tree node → number of its stack; trees have a node for each segment and stack.
            @chain_of = [0]
            @chains = {}
            @stacks = {}
            @named = {}
            @waiting = [Messages::Stack.new]
          end

          #: (String) -> Integer
          def string(text) = @strings[text] ||= @strings.size

          # @param value [String, Integer, Array<String>]
          #: (String, untyped) -> Integer
          def attribute(key, value) = id(@attributes, [string(key), value])

          # @param trace_id [String] 16 bytes
          # @param span_id [String] 8 bytes
          #: (String, String) -> Integer
          def link(trace_id, span_id) = id(@links, [trace_id, span_id])

          # The stack of a node of the tree.
          #: (Integer) -> Integer
          def stack(node)
            @stacks[chain(node)] ||= add_stack(locations(node))
          end

          # The stack that consists of a name.
          #: (String) -> Integer
          def named(name)
            @named[name] ||= add_stack([location(Analyse::MethodInfo.new(name, "", 0, Record::Frame::PITWALL), 0)])
          end

          # Hands out what is left.
          #: () -> void
          def finish
            flush
            hand_out(link_table: links, mapping_table: mappings,
                     location_table: [Messages::Location.new, *@locations.each_key.map { |key| place(*key) }],
                     function_table: [Messages::Function.new, *@functions.each_key.map { |key| function(*key) }])
            hand_out(attribute_table: attributes)
            hand_out(string_table: @strings.keys)
          end

          private

          def id(table, key) = table[key] ||= table.size + 1

          def hand_out(**tables) = @hand_out.call(Messages::ProfilesDictionary.new(**tables))

          def flush
            hand_out(stack_table: @waiting)
            @waiting = []
          end

          def add_stack(locations)
            @waiting << Messages::Stack.new(location_indices: locations)
            flush if @waiting.size >= BATCH
            @stack_count = (@stack_count || 0) + 1
          end

          # Equal stacks have the same number.
          def chain(node)
            way = []
            until (found = @chain_of[node])
              way << node
              node = @tree.parents[node]
            end
            way.reverse_each do |one|
              found = @chain_of[one] = (@chains[found << 32 | location_of(one)] ||= @chains.size + 1)
            end
            found
          end

          # From the leaf to the root.
          def locations(node)
            found = []
            while node.positive?
              found << location_of(node)
              node = @tree.parents[node]
            end
            found
          end

          def location_of(node)
            method, line = @tree.node_methods[node], @tree.lines[node]
            @location_ids[method << 32 | line] ||= location(@tree.methods[method], line)
          end

          # A native function without a name has an address in its object, by which others find its name.
          def location(info, line)
            native = info.kind == Record::Frame::NATIVE
            path = @objects.path(info)
            mapping = path ? id(@mappings, path) : 0
            address = path ? @objects.address(info) : 0
            function = address.zero? ? id(@functions, [info.name, native ? "" : info.path, info.line]) : 0
            id(@locations, [mapping, address, function, line, type(info)])
          end

          def type(info)
            type = info.kind == Record::Frame::NATIVE && info.path.start_with?("[kernel") ? "kernel" : TYPES[info.kind]
            type ? attribute("profile.frame.type", type) : 0
          end

          def place(mapping, address, function, line, type)
            lines = function.zero? ? [] : [Messages::Line.new(function_index: function, line: line)]
            Messages::Location.new(mapping_index: mapping, address: address, lines: lines,
                                   attribute_indices: type.zero? ? [] : [type])
          end

          def function(name, path, line)
            Messages::Function.new(name_strindex: string(name), filename_strindex: string(path), start_line: line)
          end

          def mappings
            [Messages::Mapping.new, *@mappings.each_key.map do |path|
              ids = [@objects.build_id(path)].compact.map { |build_id| attribute(BUILD_ID, build_id) }
              Messages::Mapping.new(filename_strindex: string(path), attribute_indices: ids)
            end]
          end

          # Zero bytes instead of none, as the definition advises.
          def links
            [["\0" * 16, "\0" * 8], *@links.keys].map do |trace, span|
              Messages::Link.new(trace_id: trace.b, span_id: span.b)
            end
          end

          def attributes
            [Messages::KeyValueAndUnit.new, *@attributes.each_key.map do |key, value|
              Messages::KeyValueAndUnit.new(key_strindex: key, value: any(value))
            end]
          end

          def any(value)
            case value
            when Integer then Messages::AnyValue.new(int_value: value)
            when Array
              Messages::AnyValue.new(array_value: Messages::ArrayValue.new(values: value.map { |one| any(one) }))
            else Messages::AnyValue.new(string_value: value)
            end
          end
        end
        private_constant :Dictionary
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/import/values"

module Pitwall
  module Record
    module Import
      class Firefox < Format
        # The tables of one thread: stacks (a frame and the stack above it), frames, functions and texts. Indexes are
        # checked when they are used. Processed profiles of newer versions have the tables once for all threads.
        # @api private
        class Tables
          include Values

          # "sum (shop.rb:12:3)", "sum (http://…/a.js:12)"
          LOCATION = /\A(?<name>.*?) \((?<path>.+?)(?::(?<line>\d{1,9}))?(?::\d{1,9})?\)\z/.freeze
          COLUMNS = 100
          private_constant :LOCATION, :COLUMNS

          class << self
            include Values

            # A table as name → list, whatever its shape. Columns that are no lists are kept (weightType).
            # @raise [Malformed]
            #: (untyped, String) -> Hash[String, untyped]
            def columns(table, what)
              table = table.nil? ? {} : object(table, what)
              return of_rows(table, what) if table.key?("schema")

              lists = table.select { |_, value| value.is_a?(Array) }
              size = lists.fetch("stack", nil)&.size
              check_times(lists, size, what) if size
              table
            end

            # A column of a table, nil where there is none.
            # @raise [Malformed] its size differs
            #: (untyped, Integer, String) -> Array[untyped]?
            def sized(column, size, what)
              return if column.nil?
              return column if list(column, what).size == size

              raise Malformed, "is damaged: a thread has #{size} samples and #{column.size} #{what}"
            end

            private

            def check_times(lists, size, what)
              %w[time timeDeltas].each do |name|
                next if !lists.key?(name) || lists[name].size == size

                raise Malformed, "is damaged: #{what} has #{size} stacks and #{lists[name].size} times"
              end
            end

            # { schema: { stack: 0, time: 1 }, data: [[12, 3.5], …] }; short rows end with nil.
            def of_rows(table, what)
              rows = list(table["data"], "the data of #{what}")
              rows.each { |row| list(row, "a row of #{what}") }
              object(table["schema"], "the schema of #{what}").to_h do |name, at|
                index(at, COLUMNS, "a column of #{what}")
                [name, rows.map { |row| row[at] }]
              end
            end
          end

          #: (Hash[String, untyped]) -> void
          def initialize(thread)
            shared = thread["shared"]
            @stack_table = self.class.columns(thread["stackTable"] || shared["stackTable"], "stackTable")
            @frames = self.class.columns(thread["frameTable"] || shared["frameTable"], "frameTable")
            @functions = self.class.columns(thread["funcTable"] || shared["funcTable"], "funcTable")
            @texts = list(thread["stringArray"] || thread["stringTable"] || shared["stringArray"] || [], "stringArray")
            @prefixes = list(@stack_table["prefix"] || [], "prefixes of stacks")
            @stack_frames = list(@stack_table["frame"] || [], "frames of stacks")
            @sources = shared["sources"].is_a?(Hash) ? shared["sources"] : {}
          end

          # @return [Integer] number of stacks
          def stacks = @stack_frames.size

          # A stack's number, checked.
          #: (untyped) -> Integer
          def stack(number) = index(number, stacks, "a stack")

          # The stack that another one continues; nil at the root.
          #: (Integer) -> Integer?
          def prefix(stack)
            found = @prefixes[stack(stack)]
            found.nil? || found == -1 ? nil : stack(found)
          end

          #: (Integer) -> Integer
          def frame(stack) = index(@stack_frames[stack(stack)], size(@frames), "a frame of a stack")

          # The category's number, of the stack or of its frame.
          #: (Integer) -> Integer?
          def category(stack) = column(@stack_table, "category", stack) || column(@frames, "category", frame(stack))

          # Name, path, line of the definition and running line.
          #: (Integer) -> [String, String, Integer, Integer]
          def place(frame)
            return of_location(frame) if @frames.key?("location")

            function = index(column(@frames, "func", frame), size(@functions), "the function of a frame")
            [text(column(@functions, "name", function), "a function's name"), path(function),
             line(column(@functions, "lineNumber", function)), line(column(@frames, "line", frame))]
          end

          # Whether the frame is at an address.
          #: (Integer) -> bool
          def native?(frame)
            return text(column(@frames, "location", frame), "a frame's location").start_with?("0x") if
              @frames.key?("location")

            address = column(@frames, "address", frame)
            address.is_a?(Integer) && address >= 0
          end

          private

          # A frame of Gecko has its place as one text.
          def of_location(frame)
            location = text(column(@frames, "location", frame), "a frame's location")
            running = line(column(@frames, "line", frame))
            match = LOCATION.match(location) or return [location, "", 0, running]
            [match[:name], match[:path], 0, running.zero? ? match[:line].to_i : running]
          end

          def path(function)
            file = column(@functions, "fileName", function)
            file = column(@sources, "filename", column(@functions, "source", function)) if file.nil?
            file.nil? || file == -1 ? "" : text(file, "a file's name")
          end

          def text(number, what)
            return number if number.is_a?(String)

            text = @texts[index(number, @texts.size, what)]
            text.nil? ? "" : string(text, what)
          end

          def column(table, name, at)
            values = table[name]
            values[at] if values.is_a?(Array) && at.is_a?(Integer) && at >= 0
          end

          def size(table) = table.each_value.filter_map { |column| column.size if column.is_a?(Array) }.max || 0
        end
        private_constant :Tables
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A shared object (or the program's own file) that has native frames. Their names are of its functions.
    #
    # path:       Frame#path of its frames, e.g. "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"
    # build_id:   in hexadecimal, e.g. "b2c1…"; "" where the object has none
    # names_from: :none, :symtab, :dynsym, :debug_file, :too_many (it has more symbols than Pitwall reads while it
    #             records); :other where this reader does not know the number
    SharedObject = Struct.new(:path, :build_id, :names_from)

    module Chunks
      # OBJS: int n, columns: path (string id, may come in a later chunk), build id (likewise), names from.
      class SharedObjects < Chunk
        NAMES_FROM = %i[none symtab dynsym debug_file too_many].freeze
        Row = Struct.new(:path, :build_id, :names_from)
        private_constant :NAMES_FROM, :Row

        type "OBJS"
        limit :shared_objects, 100_000
        # @return [Array<SharedObject>] in the order of the recording
        offers :shared_objects

        def initialize(...)
          super
          @rows = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Row)
          take(:shared_objects, values.first.size)
          @rows.concat(build_all(Row, values))
        end

        def settle(_payload_at)
          strings = table(Strings)
          lose(@rows.sum { |row| [row.path, row.build_id].count { |id| id >= strings.size } })
          @shared_objects = @rows.map do |row|
            SharedObject.new(strings.known(row.path), build_id(strings.known(row.build_id)),
                             NAMES_FROM.fetch(row.names_from, :other))
          end
        end

        #: () -> Array[[Symbol, String]]
        def warnings
          @shared_objects.select { |one| one.names_from == :too_many }.map do |one|
            [:symbols, "#{File.basename(one.path)} has too many symbols to be read while it is recorded: " \
                       "its functions are called by their address"]
          end
        end

        private

        # Files are looked up by build ids, so a build id is nothing but hexadecimal digits.
        def build_id(text) = text.match?(/\A(?:\h\h){1,64}\z/) ? text.downcase : ""
      end
    end
  end
end

# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Makes compiled code for a file out of the code of another file with the same content: in a new release folder,
    # another checkout, an image. The two differ only in the path and the real path, which are strings in the code.
    #
    # The code is binary. A list in it says at which byte each object begins. The new strings are appended, and the
    # list gets their places (ibf_dump_object_list and ibf_dump_object_string in Ruby's compile.c).
    # @api private
    module MovedCode
      # The header of the binary: a magic word, major and minor version, size, size of data of the caller, number of
      # iseqs, number of objects, place of the list of iseqs, place of the list of objects.
      HEADER = "a4L<8"
      SIZE_AT = 12
      STRING = 5 # RUBY_T_STRING
      TYPE = 0b0011_1111 # an object's type, and whether it is a special constant
      KNOWN = (3.1..4.0).freeze # Rubies whose binaries have this format
      private_constant :HEADER, :SIZE_AT, :STRING, :TYPE, :KNOWN

      # A string in the binary. number: in the list of objects · head: its first two bytes (type, encoding) ·
      # place: where its text begins · text: the text.
      Text = Struct.new(:number, :head, :place, :text) do
        def end = place + text.bytesize
      end
      private_constant :Text

      class << self
        # @param binary the code, as `to_binary` returns it
        # @param from the key of its file (Format.paths)
        # @param to the key of the file that needs code
        # @param source the content of both files
        # @return [String, nil] the code for the other file; nil: in doubt
        #: (String, String, String, String) -> String?
        def binary(binary, from, to, source)
          changes = changes_of(from, to) or return
          # A text in the source may name the old path. It must stay.
          return if changes.each_key.any? { |path| source.include?(File.basename(path)) }

          texts = texts_of(binary, changes.keys) or return
          replace(binary, texts.map { |text| [text, changes.fetch(text.text)] })
        end

        private

        # @return [Hash{String => String}, nil] the new path for each old one. nil: only one of the files has two paths,
        #   or a path is not ASCII
        def changes_of(from, to)
          old, new = [from, to].map { |key| Format.paths(key) }
          changes = old.zip(new).to_h
          changes if old.size == new.size && changes.size == old.size && (old + new).all?(&:ascii_only?)
        end

        # @return [Array<Text>, nil] all strings that are one of the wanted texts. nil: a wanted text is also a part of
        #   something longer
        def texts_of(binary, wanted)
          return unless KNOWN.cover?(RUBY_VERSION.to_f)

          magic, _, _, size, extra, _, count, _, list = binary.unpack(HEADER)
          return if magic != "YARB" || extra != 0 || size != binary.bytesize || list + (4 * count) > size

          objects = binary.unpack("L<#{count}", offset: list)
          all_texts(binary, wanted.sort_by { |text| -text.size }, objects)
        end

        # @param wanted the longer one first: it may end with the shorter one
        # @return as texts_of
        def all_texts(binary, wanted, objects)
          found = []
          wanted.each do |text|
            place = -1
            while (place = binary.index(text, place + 1))
              next if found.any? { |longer| place.between?(longer.place, longer.end - text.bytesize) }

              one = text_at(binary, place, text, objects)
              return nil if one.nil?

              found << one
            end
          end
          found
        end

        def text_at(binary, place, text, objects)
          size = small_value(text.bytesize)
          start = place - size.bytesize - 2
          return unless start.positive? && binary.byteslice(start + 2, size.bytesize) == size

          number = objects.index(start)
          Text.new(number, binary.byteslice(start, 2), place, text) if number && binary.getbyte(start) & TYPE == STRING
        end

        def replace(binary, texts)
          list = binary.unpack(HEADER).last
          moved = binary.b
          texts.each do |text, new|
            moved[list + (4 * text.number), 4] = [moved.bytesize].pack("L<")
            moved << text.head << small_value(new.bytesize) << new
            moved[text.place, text.text.bytesize] = "\0" * text.text.bytesize # a later move must not find it
          end
          moved[SIZE_AT, 4] = [moved.bytesize].pack("L<")
          moved
        end

        # The bytes of a number below 2**14 (ibf_dump_write_small_value). Zero bits at the low end of the first byte say
        # how many bytes follow.
        def small_value(value)
          return [(value << 1) | 1].pack("C") if value < 128

          [(value >> 8 << 2) | 2, value & 255].pack("CC")
        end
      end
    end
  end
end

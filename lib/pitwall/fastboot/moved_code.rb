# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Compiled code for a file with the same content at another path: a new release folder, another checkout, an image.
    # Only the path and the real path are different in it (ibf_dump_object_string in Ruby's compile.c).
    #
    # The binary has a list of objects' places. New texts are put at its end, and the list leads to them.
    # @api private
    module MovedCode
      # Of the binary: magic, two numbers of the version, size, size of what the caller added, number of iseqs, number
      # of objects, place of the list of iseqs, place of the list of objects.
      HEADER = "a4L<8"
      SIZE_AT = 12
      STRING = 5 # RUBY_T_STRING
      TYPE = 0b0011_1111 # an object's type, and whether it is a special constant
      KNOWN = (3.1..4.0).freeze # Rubies of which this is known
      private_constant :HEADER, :SIZE_AT, :STRING, :TYPE, :KNOWN

      # A string of the binary: its number in the list of objects, its first two bytes (type, encoding), where its text
      # is, its text.
      Text = Struct.new(:number, :head, :place, :text) do
        def end = place + text.bytesize
      end
      private_constant :Text

      class << self
        # Does the code have the paths of this key?
        #: (RubyVM::InstructionSequence, String) -> bool
        def of?(code, key) = [code.path, code.absolute_path].map { |path| path.to_s.b }.uniq == key.b.split("\0")

        # @param binary what `to_binary` gave
        # @param from the key of its file (see ext/fastboot/places.h)
        # @param to the key of the file with the same content
        # @param source this content
        # @return [String, nil] nil: in doubt
        #: (String, String, String, String) -> String?
        def binary(binary, from, to, source)
          changes = changes_of(from, to) or return
          # Text in the source may say where the file was.
          return if changes.each_key.any? { |path| source.b.include?(File.basename(path)) }

          texts = texts_of(binary, changes.keys) or return
          replace(binary, texts.map { |text| [text, changes.fetch(text.text)] })
        end

        private

        # @return [Hash{String => String}, nil] by old path. nil: only one of them has a link in its path
        def changes_of(from, to)
          old, new = [from, to].map { |key| key.b.split("\0") }
          changes = old.zip(new).to_h
          changes if old.size == new.size && changes.size == old.size && (old + new).all?(&:ascii_only?)
        end

        # @return [Array<Text>, nil] each string that is one of these. nil: one is a part of something else
        def texts_of(binary, wanted)
          return unless KNOWN.cover?(RUBY_VERSION.to_f)

          magic, _, _, size, extra, _, count, _, list = binary.unpack(HEADER)
          return if magic != "YARB" || extra != 0 || size != binary.bytesize || list + (4 * count) > size

          objects = binary.unpack("L<#{count}", offset: list)
          all_texts(binary, wanted.sort_by { |text| -text.size }, objects)
        end

        # One of the paths may end with the other.
        # @param wanted the longer one first
        # @return [Array<Text>, nil] nil: one is a part of something else
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
          texts.each do |text, now|
            moved[list + (4 * text.number), 4] = [moved.bytesize].pack("L<")
            moved << text.head << small_value(now.bytesize) << now
            moved[text.place, text.text.bytesize] = "\0" * text.text.bytesize # the code may move again
          end
          moved[SIZE_AT, 4] = [moved.bytesize].pack("L<")
          moved
        end

        # ibf_dump_write_small_value, for less than 2**14: the number of low zero bits is that of further bytes.
        def small_value(value)
          return [(value << 1) | 1].pack("C") if value < 128

          [(value >> 8 << 2) | 2, value & 255].pack("CC")
        end
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record"
require "pitwall/symbols/elf_file"
require "pitwall/symbols/library"

module Pitwall
  module Symbols
    # Names functions that a recording knows by their address only ("libx.so.1+0x1234"), from folders with the objects
    # or their debug files. A recording may come from another machine, and files may have been replaced since: so a file
    # is used only if it has the build id that was recorded.
    class Resolution
      # A frame's name without a symbol: the object's file name, the virtual address.
      UNNAMED = /\A(?<object>.+)\+0x(?<address>\h{1,16})\z/.freeze
      private_constant :UNNAMED

      # @return [Array<String>] why functions of an object have no names, one line an object
      attr_reader :notes
      # @return [Integer] functions that were named
      attr_reader :named

      #: (Array[String]) -> void
      def initialize(folders)
        @library = Library.new(folders)
        @notes = []
        @named = 0
      end

      # Copies of the segments with the names that were found.
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments)
        wanted = Hash.new { |all, object| all[object] = [] }
        segments.each { |segment| each_unnamed(segment) { |_, object, address| wanted[object] << address } }
        names = wanted.to_h { |object, addresses| [object, names_of(object, addresses.uniq)] }
        @notes.concat(@library.cut.uniq.map { |folder| "#{folder}: has too many files, not all were looked at" })
        segments.map { |segment| renamed(segment, names) }
      end

      private

      # @yield [frame, object, address] object: [path, build id]; the build id is nil where several were recorded
      def each_unnamed(segment)
        ids = nil
        segment.frames.each_value do |frame|
          next unless frame.kind == Record::Frame::NATIVE && (match = UNNAMED.match(frame.name))
          next unless match[:object] == File.basename(frame.path)

          ids ||= segment.shared_objects.group_by(&:path).transform_values { |all| all.map(&:build_id).uniq }
          known = ids.fetch(frame.path, [""])
          yield frame, [frame.path, known.size == 1 ? known.first : nil], match[:address].hex
        end
      end

      def renamed(segment, names)
        found = {}
        each_unnamed(segment) do |frame, object, address|
          name = names.fetch(object)[address] or next
          found[frame.id] = frame.dup.tap { |copy| copy.name = name }
        end
        @named += found.size
        found.empty? ? segment : segment.with(frames: segment.frames.merge(found))
      end

      # {address => name} of an object's functions.
      def names_of(object, addresses)
        path, build_id = object
        refusal = unidentified(path, build_id)
        return note(refusal) if refusal

        files = @library.files(build_id)
        return note(missing(path, build_id)) if files.empty?

        found = files.lazy.filter_map { |file| names_in(file, addresses) }.first || {}
        if found.empty?
          note("#{files.first}: has the build id of #{File.basename(path)}, but no symbols for these functions; " \
               "the unstripped object or its debug file has them")
        end
        found
      end

      def names_in(file, addresses)
        found = ElfFile.open(file) { |elf| elf.names(addresses) }
        found unless found.empty?
      rescue ElfFile::Malformed => error
        note("#{file}: #{error.message}")
        nil
      rescue SystemCallError => error
        note("#{file}: can't be read (#{error.class.name.delete_prefix("Errno::")})")
        nil
      end

      def unidentified(path, build_id)
        name = File.basename(path)
        return "#{name}: was replaced while it was recorded, so its functions stay unnamed" if build_id.nil?

        "#{name}: was recorded without a build id, so no file can be shown to be it" if build_id.empty?
      end

      def missing(path, build_id)
        name = File.basename(path)
        other, id = @library.namesakes(path).first
        return "#{name}: no file has its build id #{build_id}" unless other

        "#{other}: is not used for #{name}: it has #{id.empty? ? "no build id" : "the build id #{id}"}, and " \
          "#{build_id} was recorded"
      end

      def note(line)
        @notes << line
        {}
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/symbols/elf_file"

module Pitwall
  module Symbols
    # Folders with unstripped objects and debug files. A file belongs to an object if both have the same build id; the
    # names of files do not matter.
    # @api private
    class Library
      # Files that are looked at, and how deep folders may be nested.
      FILES = 50_000
      DEPTH = 12
      private_constant :FILES, :DEPTH

      # @return [Array<String>] folders that have more files than are looked at
      attr_reader :cut

      #: (Array[String]) -> void
      def initialize(folders)
        @folders = folders
        @cut = []
      end

      # The files of a build id, those with all symbols first.
      #: (String) -> Array[String]
      def files(build_id)
        found = by_layout(build_id)
        found = scanned.fetch(build_id, []) if found.empty?
        found.sort_by { |path| [complete?(path) ? 0 : 1, path] }
      end

      # Objects of the same file name as `path`, with their build ids: {"symbols/libx.so" => "b2c1…"}
      #: (String) -> Hash[String, String]
      def namesakes(path)
        name = File.basename(path)
        scanned.flat_map { |id, paths| paths.map { |one| [one, id] } }
               .select { |one, _| [name, "#{name}.debug"].include?(File.basename(one)) }.to_h
      end

      private

      # Distributions put debug files into .build-id/b2/c1….debug.
      def by_layout(build_id)
        place = "#{build_id[0, 2]}/#{build_id[2..]}"
        paths = @folders.flat_map do |folder|
          [".build-id/", "usr/lib/debug/.build-id/", ""].flat_map do |below|
            [File.join(folder, "#{below}#{place}.debug"), File.join(folder, "#{below}#{place}")]
          end
        end
        paths.select { |path| id_of(path) == build_id }
      end

      # {build id => paths} of all objects; "" of those without one.
      def scanned
        @scanned ||= @folders.flat_map { |folder| objects_in(folder) }.uniq.group_by { |path| id_of(path) || :broken }
                             .reject { |id, _| id == :broken }
      end

      def objects_in(folder)
        files, waiting = [], [[folder, 0]]
        until waiting.empty?
          at, depth = waiting.shift
          children(at).each do |path|
            if File.directory?(path)
              waiting << [path, depth + 1] unless File.symlink?(path) || depth >= DEPTH
            else
              files << path
            end
          end
          break @cut << folder if files.size > FILES
        end
        files.first(FILES).select { |path| ElfFile.file?(path) }
      end

      def children(folder)
        Dir.children(folder).sort.map { |name| File.join(folder, name) }
      rescue SystemCallError
        []
      end

      # nil: no object, or a damaged one.
      def id_of(path)
        ElfFile.open(path, &:build_id) if ElfFile.file?(path)
      rescue ElfFile::Malformed, SystemCallError
        nil
      end

      def complete?(path)
        ElfFile.open(path, &:symtab?)
      rescue ElfFile::Malformed, SystemCallError
        false
      end
    end
    private_constant :Library
  end
end

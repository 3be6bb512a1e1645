# frozen_string_literal: true

module Pitwall
  module Analyse
    class ProfileChange
      # Finds out from the recordings how two sides can be compared, and what makes them different.
      module Pair
        # Paths of libraries. Names compares them without their folder.
        LIBRARY = %r{/gems/|/lib/ruby/}.freeze
        private_constant :LIBRARY

        # The folder of each side's code, if the sides are two checkouts of one program; else nil and nil.
        # Compares the files of methods that have the same name on both sides.
        # @param sides [Array<Array<Array<Record::Segment>>>] by side and recording: its segments
        #: (Array[Array[Array[Record::Segment]]]) -> [String?, String?]
        def self.bases(sides)
          a, b = sides.map { |recordings| own_files(recordings) }
          names = (a.keys & b.keys).select { |name| a[name].size == 1 && b[name].size == 1 }
          folders = names.filter_map { |name| folders_of(a[name].first, b[name].first) }
          folders.tally.max_by(&:last)&.first || [nil, nil]
        end

        # Lines that say how the programs differ.
        # @param names [Array<String>] names of the sides
        #: (Array[Array[Array[Record::Segment]]], Array[String]) -> Array[String]
        def self.warnings(sides, names)
          headers = sides.map { |recordings| recordings.map(&:first).compact.map(&:header) }
          programs, options = %i[program argv_options].map { |what| headers.map { |side| side.map(&what).uniq } }
          if programs[0] != programs[1]
            ["different programs: #{facts(names, programs)}; a method of one of them only counts as new or gone"]
          elsif options[0] != options[1]
            lists = options.map { |side| side.map { |list| list.empty? ? "none" : list.join(" ") } }
            ["started with different options: #{facts(names, lists)}"]
          else []
          end
        end

        # Method's name → its files, without libraries.
        def self.own_files(recordings)
          frames = recordings.flatten.flat_map { |segment| segment.frames.values }
          own = frames.select { |frame| frame.path.start_with?("/") && !frame.path.match?(LIBRARY) }
          own.group_by(&:name).transform_values { |group| group.map(&:path).uniq }
        end

        # Folders of two paths with the same end: "/srv/a/lib/x.rb", "/srv/b/lib/x.rb" → ["/srv/a", "/srv/b"]
        def self.folders_of(one, other)
          a, b = [one, other].map { |path| path.split("/") }
          return if one == other || a.last != b.last

          a.pop && b.pop while a.last == b.last
          [a, b].map { |parts| parts.join("/") }.then { |folders| folders if folders.none?(&:empty?) }
        end

        # "A app.rb, B unknown"
        def self.facts(names, values)
          texts = values.map { |all| all.compact.empty? ? "unknown" : all.compact.join(", ") }
          names.zip(texts).map { |pair| pair.join(" ") }.join(", ")
        end
        private_class_method :own_files, :folders_of, :facts
      end
    end
  end
end

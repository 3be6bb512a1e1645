# frozen_string_literal: true

module Pitwall
  module Analyse
    class ProfileChange
      # What recordings themselves say of whether, and how, two sides can be held against each other.
      module Pair
        # Code that is found under its gem's or its library's name wherever it lies.
        LIBRARY = %r{/gems/|/lib/ruby/}.freeze
        private_constant :LIBRARY

        # By side the folder of its code, told by the files of methods that both have under one name: two checkouts of one
        # program; nil and nil where there are none such.
        # @param sides [Array<Array<Array<Record::Segment>>>] by side the segments of each recording
        #: (Array[Array[Array[Record::Segment]]]) -> [String?, String?]
        def self.bases(sides)
          a, b = sides.map { |recordings| own_files(recordings) }
          folders = (a.keys & b.keys).filter_map { |name| parted(a[name].first, b[name].first) if a[name].size == 1 && b[name].size == 1 }
          folders.tally.max_by(&:last)&.first || [nil, nil]
        end

        # Lines that say by what the programs differ.
        # @param names [Array<String>] of the sides
        #: (Array[Array[Array[Record::Segment]]], Array[String]) -> Array[String]
        def self.warnings(sides, names)
          headers = sides.map { |recordings| recordings.map(&:first).compact.map(&:header) }
          programs, options = %i[program argv_options].map { |what| headers.map { |side| side.map(&what).uniq } }
          if programs[0] != programs[1]
            ["different programs: #{told(names, programs)}; a method of one of them only counts as new or gone"]
          elsif options[0] != options[1]
            ["started with different options: #{told(names, options.map { |side| side.map { |list| list.empty? ? "none" : list.join(" ") } })}"]
          else []
          end
        end

        # Name → files, of what lies in no library.
        def self.own_files(recordings)
          recordings.flatten.flat_map { |segment| segment.frames.values }.select { |frame| frame.path.start_with?("/") && !frame.path.match?(LIBRARY) }
                    .group_by(&:name).transform_values { |frames| frames.map(&:path).uniq }
        end

        # "/srv/a/lib/x.rb", "/srv/b/lib/x.rb" → ["/srv/a", "/srv/b"]
        def self.parted(one, other)
          a, b = [one, other].map { |path| path.split("/") }
          return if one == other || a.last != b.last

          a.pop && b.pop while a.last == b.last
          [a, b].map { |parts| parts.join("/") }.then { |folders| folders if folders.none?(&:empty?) }
        end

        def self.told(names, facts) = names.zip(facts).map { |name, all| "#{name} #{all.compact.empty? ? "unknown" : all.compact.join(", ")}" }.join(", ")
        private_class_method :own_files, :parted, :told
      end
    end
  end
end

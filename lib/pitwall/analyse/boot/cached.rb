# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # What caches of compiled code, or of YAML and JSON files, said of the files of a boot. Each file counts once.
      module Cached
        # Their words for a file that came from the cache. With any other word it did not.
        HITS = %w[hit hit_by_content hit_moved revalidated data_hit data_hit_by_content data_hit_moved].freeze
        # name: "bootsnap", "fastboot" · outcomes: {"missing" => 12, "changed" => 1}, of files that did not come from it
        Row = Struct.new(:name, :hits, :outcomes, keyword_init: true) do
          #: () -> Integer
          def misses = outcomes.values.sum
        end
        private_constant :HITS

        module_function

        # Of each cache that was asked, the one with most files first.
        #: (Array[Node]) -> Array[Row]
        def rows(nodes)
          words = nodes.map { |node| node.row.cache }.reject(&:empty?).map { |text| text.split(" ", 2) }
          rows = words.group_by(&:first).map do |name, pairs|
            hits, others = pairs.map(&:last).partition { |word| HITS.include?(word) }
            Row.new(name: name, hits: hits.size, outcomes: others.tally)
          end
          rows.sort_by { |row| [-row.hits - row.misses, row.name] }
        end

        # Did the file come from a cache? nil: none was asked.
        # @param text [String] of a Load: "bootsnap hit"
        #: (String) -> bool?
        def hit?(text) = text.empty? ? nil : HITS.include?(text.split(" ", 2).last)
      end
    end
  end
end

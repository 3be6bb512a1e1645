# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # What caches of compiled code, or of files of data, said of the files of a boot. A file that was loaded
      # several times counts once: not as a hit, if it did not come from the cache each time. Files that could not be
      # loaded do not count.
      module Cached
        # Their words for a file that came from the cache. With any other word it did not.
        HITS = %w[hit hit_by_content hit_moved revalidated data_hit data_hit_by_content data_hit_moved].freeze
        # Words for a file that the cache can have in the next boot. Of others it never keeps the code.
        CURABLE = %w[missing changed damaged refused moving miss stale].freeze
        # name: "bootsnap", "fastboot" · outcomes: {"missing" => 12, "changed" => 1}, of files that did not come from it
        Row = Struct.new(:name, :hits, :outcomes, keyword_init: true) do
          #: () -> Integer
          def misses = outcomes.values.sum
        end
        private_constant :HITS, :CURABLE

        module_function

        # Of each cache that was asked, the one with most files first.
        #: (Array[Node]) -> Array[Row]
        def rows(nodes)
          rows = nodes.reject { |node| node.cached?.nil? }.group_by { |node| name(node) }.map do |name, of_cache|
            files = of_cache.group_by(&:path).values
            words = files.map { |same| word(same.find { |node| !node.cached? } || same.first) }
            hits, others = words.partition { |word| HITS.include?(word) }
            Row.new(name: name, hits: hits.size, outcomes: others.tally)
          end
          rows.sort_by { |row| [-row.hits - row.misses, row.name] }
        end

        # "bootsnap"
        #: (Node) -> String
        def name(node) = node.row.cache.split(" ", 2).first

        #: (Node) -> String
        def word(node) = node.row.cache.split(" ", 2).last

        #: (Node) -> bool
        def hit?(node) = HITS.include?(word(node))

        # Can the cache have its code in the next boot?
        #: (Node) -> bool
        def curable?(node) = CURABLE.include?(word(node))
      end
    end
  end
end

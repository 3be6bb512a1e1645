# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # Counts by path, in bounded memory. If there are too many paths, rare paths are replaced by their folder.
      class PathCounts
        # Most paths, and most bytes of paths.
        MOST = 6_000
        BYTES = 2 << 20
        # A path, or a folder (with a slash at its end) with everything below it. count: how often; calls; ns.
        Row = Struct.new(:path, :count, :calls, :ns)
        private_constant :MOST, :BYTES

        # The folder of a path: "/a/b.rb" → "/a/", "/a/" → "/", "b.rb" → "./"
        #: (String) -> String
        def self.folder(path)
          slash = path.rindex("/", path.end_with?("/") ? -2 : -1)
          slash ? path[0, slash + 1] : "./"
        end

        #: (?most: Integer, ?bytes: Integer) -> void
        def initialize(most: MOST, bytes: BYTES)
          @rows = {}
          @most = most
          @most_bytes = bytes
          @bytes = 0
        end

        # Whether paths were replaced by folders.
        #: () -> bool
        def folded? = !!@folded

        # Counts a path once, with so many calls and their time in ns.
        #: (String, Integer, Integer?) -> void
        def add(path, calls, ns)
          row = @rows[path]
          return insert(path, 1, calls, ns || 0) unless row

          row[0] += 1
          row[1] += calls
          row[2] += ns if ns
        end

        # All paths.
        #: () -> Array[Row]
        def rows = @rows.map { |path, row| Row.new(path, *row) }

        # The counts as plain values, for another process.
        #: () -> Array[untyped]
        def dump = [folded?, @rows]

        # Adds the result of {dump} of other counts.
        #: (Array[untyped]) -> void
        def load(dumped)
          folded, rows = dumped
          @folded ||= folded
          rows.each do |path, (count, calls, ns)|
            row = @rows[path] || insert(path, 0, 0, 0)
            row[0] += count
            row[1] += calls
            row[2] += ns
          end
        end

        # Counts by a name that the block gives each path, most frequent first.
        # @yield [path] returns the name
        #: () { (String) -> String } -> Array[Row]
        def by
          sums = {}
          @rows.each do |path, (count, calls, ns)|
            key = yield(path)
            sum = sums[key] ||= Row.new(key, 0, 0, 0)
            sum.count += count
            sum.calls += calls
            sum.ns += ns
          end
          sums.values.sort_by { |row| [-row.count, -row.calls, row.path] }
        end

        # At most `limit` paths and common folders, most frequent first. They are disjoint and add up to all.
        # A folder counts paths below it that are in no other row. The row "elsewhere" counts the other paths.
        #: (Integer) -> Array[Row]
        def groups(limit)
          return [] if @rows.empty?

          @tree = [@rows.size, Groups.new(rows)] unless @tree&.first == @rows.size
          @tree.last.within(limit)
        end

        private

        def insert(path, count, calls, ns)
          fold if @rows.size >= @most || @bytes > @most_bytes
          @bytes += path.bytesize
          @rows[path] = [count, calls, ns]
        end

        def fold
          @folded = true
          depth = 0
          while @rows.size > @most / 2 || @bytes > @most_bytes / 2
            # Frequent paths are kept, unless there are too many of them.
            heavy = depth < 3 ? @rows.each_value.map(&:first).max(@most / 4).last : Float::INFINITY
            before = @rows
            @rows = {}
            before.each { |path, row| row[0] > heavy ? merge(path, row) : merge(PathCounts.folder(path), row) }
            @bytes = @rows.each_key.sum(&:bytesize)
            depth += 1
            break if @rows.size == before.size && depth > 3
          end
        end

        def merge(path, row)
          sum = @rows[path] or return @rows[path] = row
          sum[0] += row[0]
          sum[1] += row[1]
          sum[2] += row[2]
        end

        # A tree of folders, to find common ones.
        # @api private
        class Groups
          Node = Struct.new(:path, :children, :count, :calls, :ns)
          LEAF = {}.freeze
          private_constant :Node, :LEAF

          def initialize(rows)
            @root = Node.new("", {}, 0, 0, 0)
            @folders = { "" => @root }
            @parents = []
            rows.each { |row| insert(row) }
            # Parents are before their children, so the reverse order adds children first.
            @parents.reverse_each { |parent, node| add(parent, node) }
            @folders = @parents = nil
          end

          # The finest division with at most `limit` rows.
          def within(limit)
            least = 1
            until (found = division(least, limit))
              least = [least * 2, 2].max
            end
            found.sort_by { |row| [-row.count, -row.calls, row.path] }
          end

          private

          def insert(row)
            path = row.path
            slash = path.rindex("/")
            node = folder(slash ? path[0..slash] : "")
            add(node, row)
            return if slash.nil? ? path.empty? : slash + 1 == path.size

            node.children[path] = Node.new(path, LEAF, row.count, row.calls, row.ns)
          end

          def folder(path)
            @folders[path] ||= begin
              slash = path.size > 1 ? path.rindex("/", -2) : nil
              parent = folder(slash ? path[0..slash] : "")
              node = parent.children[path.freeze] = Node.new(path, {}, 0, 0, 0)
              @parents << [parent, node]
              node
            end
          end

          def add(node, row)
            node.count += row.count
            node.calls += row.calls
            node.ns += row.ns
          end

          # Rows with a count of at least `least`, and one for the rest.
          # Nil if there are more than the limit, unless there is no coarser division.
          def division(least, limit)
            @found = []
            @most = least > @root.count ? Float::INFINITY : limit
            catch(:too_many) do
              rest = gather(@root, least)
              @found << Row.new("elsewhere", *rest) if rest[0].positive?
              return @found if @found.size <= @most
            end
            nil
          end

          # Counts of a node that no row has yet. Adds a row for them if they are at least `least`.
          def gather(node, least)
            return [node.count, node.calls, node.ns] if node.count < least

            rest = [node.count, node.calls, node.ns]
            node.children.each_value do |child|
              left = gather(child, least)
              rest[0] += left[0] - child.count
              rest[1] += left[1] - child.calls
              rest[2] += left[2] - child.ns
            end
            return rest if rest[0].zero? || rest[0] < least || node.equal?(@root)

            @found << Row.new(node.path, *rest)
            throw :too_many if @found.size > @most
            [0, 0, 0]
          end
        end
        private_constant :Groups
      end
    end
  end
end

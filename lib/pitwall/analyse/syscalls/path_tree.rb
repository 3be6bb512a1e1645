# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # Paths as a tree of folders, of bounded size. Small paths are merged into one row of their folder. A folder that
      # contains only one other folder is one row with it.
      class PathTree
        # A row.
        #
        # name:   one or several components; a folder's name ends with a slash
        # parent: number of the parent node, from 1; 0 for none
        # kind:   :path, :others (merged small paths) or :none (calls without a path)
        # calls, ns, explained, paths: of this path only, without paths below it
        Node = Struct.new(:name, :parent, :kind, :calls, :ns, :explained, :paths)
        # Most rows, and most bytes of their names.
        MOST = 3000
        BYTES = 128 << 10
        # A node while the tree is built. own: sums of this path only. total: with all paths below. up: the parent.
        Part = Struct.new(:name, :folder, :children, :own, :total, :up)
        private_constant :MOST, :BYTES, :Part

        # @return [Array<Node>] node number k at index k - 1; parents are before children
        attr_reader :nodes
        # @return [Integer] number of paths merged into rows of kind :others
        attr_reader :merged

        # @param rows [Enumerable<Array(String, Integer, Integer, Integer)>] path, calls, ns, explained calls;
        #   a path may occur several times
        # @param without [Array(Integer, Integer, Integer)] calls without a path: calls, ns, explained calls
        #: (
        #    Enumerable[[String, Integer, Integer, Integer]], ?without: [Integer, Integer, Integer], ?most: Integer,
        #    ?bytes: Integer
        #  ) -> void
        def initialize(rows, without: [0, 0, 0], most: MOST, bytes: BYTES)
          @top = part("", true)
          rows.each { |path, *sums| insert(path, sums) }
          parts = all_parts
          add_up(parts)
          kept = choose(parts, most, bytes)
          @nodes = []
          write(parts, kept)
          @nodes << Node.new("", 0, :none, *without, 0) if without[0].positive?
        end

        private

        def part(name, folder) = Part.new(name, folder, {}, [0, 0, 0, 0], nil, nil)

        # Adds a path by its components: "/a/b.rb" → "/" "a" "b.rb"; "b.rb" → "." "b.rb"
        def insert(path, sums)
          path = path.b
          names = path.split("/").reject { |name| name.empty? || name == "." }
          at = @top.children[path.start_with?("/")] ||= part(path.start_with?("/") ? "/" : "./", true)
          names.each do |name|
            at.folder = true
            at = at.children[name] ||= part(name, false)
          end
          at.folder = true if path.end_with?("/")
          at.own[3] += 1 if at.own[0].zero?
          sums.each_with_index { |sum, index| at.own[index] += sum }
        end

        # All parts, parents before children. Chains of folders are one part.
        def all_parts
          found = []
          waiting = @top.children.values
          while (at = waiting.pop)
            at = chain(at)
            found << at
            at.children.each_value { |child| child.up = at }
            waiting.concat(at.children.values)
          end
          found
        end

        def chain(at)
          names = [at.name]
          up = at.up
          while at.own[3].zero? && at.children.size == 1 && at.children.first[1].folder
            at = at.children.first[1]
            names << at.name
          end
          file = names.pop unless at.folder
          folders = names.map { |name| name.end_with?("/") ? name : "#{name}/" }
          at.name = [*folders, *file].join
          at.up = up
          at
        end

        def add_up(parts)
          parts.each { |at| at.total = at.own.dup }
          parts.reverse_each do |at|
            at.up&.then { |up| at.total.each_with_index { |sum, index| up.total[index] += sum } }
          end
          @whole = parts.reject(&:up).map(&:total).transpose.map(&:sum)
        end

        # The parts with most calls or time. A folder has at least the weight of its contents, and is before them.
        def choose(parts, most, bytes)
          weights = parts.map { |at| [share(at.total[0], @whole[0]), share(at.total[1], @whole[1])].max }
          kept = {}.compare_by_identity
          parts.each_index.sort_by { |index| [-weights[index], index] }.each do |index|
            bytes -= parts[index].name.bytesize
            break if kept.size >= most || bytes.negative?

            kept[parts[index]] = true
          end
          kept
        end

        def share(sum, whole) = whole.to_i.zero? ? 0.0 : sum.fdiv(whole)

        def write(parts, kept)
          numbers = {}.compare_by_identity
          others = Hash.new { |known, up| known[up] = [0, 0, 0, 0] }.compare_by_identity
          parts.each do |at|
            if kept[at]
              @nodes << Node.new(at.name, at.up ? numbers.fetch(at.up) : 0, :path, *at.own)
              numbers[at] = @nodes.size
            elsif at.up.nil? || kept[at.up]
              sums = others[at.up || @top]
              at.total.each_with_index { |sum, index| sums[index] += sum }
            end
          end
          others.each { |up, sums| @nodes << Node.new("", numbers.fetch(up, 0), :others, *sums) }
          @merged = others.each_value.sum { |sums| sums[3] }
        end
      end
    end
  end
end

# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # Paths as a tree of folders, of bounded size: what is small is merged into one row of its folder. Folders that hold nothing but one other folder
      # are one row with it.
      class PathTree
        # name: of one or several components, a folder's ends in a slash · parent: number of its node, 0 for none · kind: :path, :others (what is
        # small, merged) or :none (calls without a path) · calls, ns, explained, paths: its own, without what is below it
        Node = Struct.new(:name, :parent, :kind, :calls, :ns, :explained, :paths)
        # Rows, and bytes of their names.
        MOST = 3000
        BYTES = 128 << 10
        # While it is built. own: what happened to this very path; total: and to all below it.
        Part = Struct.new(:name, :folder, :children, :own, :total, :up)
        private_constant :MOST, :BYTES, :Part

        # @return [Array<Node>] node k at k - 1, parents before children
        attr_reader :nodes
        # @return [Integer] paths that are merged in rows of others
        attr_reader :merged

        # @param rows [Enumerable<Array(String, Integer, Integer, Integer)>] path, calls, ns, explained calls; a path may occur several times
        # @param without [Array(Integer, Integer, Integer)] calls without a path, their ns, explained ones
        #: (Enumerable[[String, Integer, Integer, Integer]], ?without: [Integer, Integer, Integer], ?most: Integer, ?bytes: Integer) -> void
        def initialize(rows, without: [0, 0, 0], most: MOST, bytes: BYTES)
          @top = part("", true)
          rows.each { |path, *sums| insert(path, sums) }
          parts = lined_up
          add_up(parts)
          kept = choose(parts, most, bytes)
          @nodes = []
          write(parts, kept)
          @nodes << Node.new("", 0, :none, *without, 0) if without[0].positive?
        end

        private

        def part(name, folder) = Part.new(name, folder, {}, [0, 0, 0, 0], nil, nil)

        # "/a/b.rb" → "/" "a" "b.rb"; "b.rb" → "." "b.rb"
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

        # Parents before children; chains as one.
        def lined_up
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
          at.name = names.each_with_index.map { |name, index| name.end_with?("/") || (index == names.size - 1 && !at.folder) ? name : "#{name}/" }.join
          at.up = up
          at
        end

        def add_up(parts)
          parts.each { |at| at.total = at.own.dup }
          parts.reverse_each { |at| at.up&.then { |up| at.total.each_with_index { |sum, index| up.total[index] += sum } } }
          @whole = parts.reject(&:up).map(&:total).transpose.map(&:sum)
        end

        # The heaviest, by calls or by time. A folder weighs no less than what is in it, and comes before it.
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

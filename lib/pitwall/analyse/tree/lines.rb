# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Weight by source line.
    # C functions and garbage collection have no lines. They count for the Ruby line that called them.
    # So the self weights of all rows add up to the total, including the row without a line.
    module Lines
      # path and line: "" and 0 for weight without a line. method: the line's method; the heaviest if there are several.
      Row = Struct.new(:path, :line, :method, :own, :total)

      # Lines with any weight, heaviest self first.
      #: (CallTree, Symbol) -> Array[Row]
      def self.rows(tree, weight)
        keys, places = places(tree)
        owns = tree.self_by(weight, keys, places.size)
        totals = tree.total_by(weight, keys, places.size)
        names = methods(tree, weight, keys)
        rows = []
        places.each_key.with_index do |(path, line), at|
          next if totals[at].zero?

          rows << Row.new(path, line, names[at] && tree.methods[names[at]], owns[at], totals[at])
        end
        rows.sort_by! { |row| [-row.own, -row.total, row.path, row.line] }
      end

      # Two values: by node the number of its (path, line), and all (path, line) in the order of their numbers.
      def self.places(tree)
        places = { ["", 0] => 0 }
        paths = tree.methods.map { |method| method.ruby? && !method.path.empty? ? method.path : nil }
        by_path = Hash.new { |known, path| known[path] = {} }
        keys = Array.new(tree.size, 0)
        (1...tree.size).each do |node|
          path = paths[tree.node_methods[node]]
          line = tree.lines[node]
          keys[node] = if path.nil? || line.zero? then keys[tree.parents[node]]
                       else by_path[path][line] ||= (places[[path, line]] ||= places.size)
                       end
        end
        [keys, places]
      end
      private_class_method :places

      def self.methods(tree, weight, keys)
        subtrees = tree.subtrees(weight)
        best = {}
        names = {}
        (1...tree.size).each do |node|
          key = keys[node]
          method = tree.node_methods[node]
          next unless key.positive? && tree.methods[method].ruby? && subtrees[node] > best.fetch(key, 0)

          best[key] = subtrees[node]
          names[key] = method
        end
        names
      end
      private_class_method :methods
    end
  end
end

# frozen_string_literal: true

require "set"

module Pitwall
  module Analyse
    class Boot
      # Which files and gems of a boot were never used afterwards, until each process that was recorded had ended.
      #
      # A file is used when a method or a block of it runs after the file was loaded, in any process. Some files can't
      # be told: those without methods, those that load compiled code (its calls are not seen), those that
      # `load` runs (a script does its work while it is loaded), those whose load did not end. A gem is unused if no
      # file of it is used, one of its files is unused, and it has no compiled code.
      class Uses
        # What was never used.
        # name: the gem, or the file's path · place: [path, line] that asks for it · files: of a gem, else 1
        # own_ns, objects, calls: of its files themselves; calls is nil where they were not recorded
        # node: the outermost load, the heaviest of several
        Row = Struct.new(:name, :place, :files, :own_ns, :objects, :calls, :node, keyword_init: true)

        # @param segments [Array<Record::Segment>] of all processes
        #: (Boot, Array[Record::Segment]) -> void
        def initialize(boot, segments)
          @boot = boot
          @all = segments
          @segments = segments.select(&:uses?)
          rows = @segments.flat_map(&:file_uses)
          @watched = rows.map(&:path).to_set
          @used = rows.reject { |row| row.used.zero? }.to_set(&:path)
        end

        # Were uses recorded?
        #: () -> bool
        def known? = @segments.any?

        # Was the file of the load used? nil: can't be told.
        #: (Node) -> bool?
        def used?(node)
          return true if @used.include?(node.row.path)
          return unless node.code? && node.loaded? && @watched.include?(node.row.path)

          node.row.kind == "load" || compiled_code?(node) ? nil : false
        end

        # @return [Set<String>] files that were used
        #: () -> Set[String]
        def used_paths = @used

        # Numbers of Ruby files: {used: 12, unused: 30, unknown: 8}
        #: () -> Hash[Symbol, Integer]
        def counts
          by_path = files.group_by(&:path).map { |_, nodes| verdict(nodes) }
          { used: by_path.count(true), unused: by_path.count(false), unknown: by_path.count(nil) }
        end

        # Gems of which no file was used. The first row is the gem whose own files took the most time.
        #: () -> Array[Row]
        def gems = @gems ||= rows(unused_gems)

        # Files that were not used, those of unused gems included. The first row is the file with the most time of its
        # own.
        #: () -> Array[Row]
        def unused_files
          return [] unless known?

          @unused_files ||= rows(files.group_by(&:path).select { |_, nodes| verdict(nodes) == false })
        end

        # The same without files of unused gems.
        #: () -> Array[Row]
        def files_of_used = unused_files.reject { |row| gem?(gem_of(row.node)) }

        # Is it the name of an unused gem?
        #: (String?) -> bool
        def gem?(name) = !name.nil? && unused_gems.key?(name)

        # Time of a load and of what it loads, without files that are used: something else would load those.
        #: (Node) -> Integer
        def saving_ns(node)
          node.own[:wall] + node.children.sum { |child| used?(child) ? 0 : saving_ns(child) }
        end

        # Did a process end so that its last uses may be missing? One that is killed at once has written nothing.
        #: () -> bool
        def killed?
          @all.any? { |one| one.header&.collectors&.include?("boot") && one.boot_sizes("end").empty? }
        end

        private

        def files
          @files ||= @boot.nodes.select do |node|
            node.code? && node.loaded? && node.kind != "extension" && @boot.main?(node)
          end
        end

        # A file may be loaded several times.
        def verdict(nodes)
          found = nodes.map { |node| used?(node) }
          found.include?(true) || (found.include?(nil) ? nil : false)
        end

        def compiled_code?(node) = node.children.any? { |child| child.kind == "extension" }

        def gem_of(node) = @boot.owners.gem(node)

        def unused_gems
          return {} unless known?

          @unused_gems ||= begin
            used = @used.map { |path| @boot.owners.gem_at(path) }.to_set
            by_gem = @boot.nodes.select { |node| node.code? && @boot.main?(node) }.group_by { |node| gem_of(node) }
            by_gem.reject { |name, nodes| name.nil? || used.include?(name) || nodes.any? { |node| unclear?(node) } }
                  .select { |_, nodes| nodes.any? { |node| used?(node) == false } }
          end
        end

        # It may be used in a way that is not seen.
        def unclear?(node) = node.kind == "extension" || node.row.ending == 1

        def rows(groups)
          groups.map { |name, nodes| row(name, nodes) }.sort_by { |row| [-row.own_ns, row.name] }
        end

        def row(name, nodes)
          node = Node.outermost(nodes).max_by { |one| one.total[:wall] }
          Row.new(name: name, place: [node.row.from, node.row.line], files: nodes.map(&:path).uniq.size,
                  own_ns: sum(nodes, :wall), objects: sum(nodes, :objects),
                  calls: @boot.calls? ? sum(nodes, :calls) : nil, node: node)
        end

        def sum(nodes, figure) = nodes.sum { |node| node.own[figure] }
      end
    end
  end
end

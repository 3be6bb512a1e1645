# frozen_string_literal: true

require "pitwall/application"

module Pitwall
  module Analyse
    class Boot
      # Whose code a load runs: Ruby's start, RubyGems, Bundler, Rails, a gem, the standard library, the application.
      class Owners
        # own_ns: of the code of this owner itself
        # files:  different files of this owner
        # total_ns: of gems, with all that a gem's outermost files load
        Row = Struct.new(:name, :own_ns, :objects, :files, :compile_ns, :total_ns, keyword_init: true)

        RUBY = "Ruby's start"
        OUTSIDE = "outside of files"
        APPLICATION = "application"
        STDLIB = "standard library"
        GEMS = "gems"
        RAILS = Application.gems("rails").freeze
        # ".../bundler-2.5.1/lib/bundler/dsl.rb", ".../3.4.0/bundler.rb"
        BUNDLER_PATH = %r{/bundler(?:-[\d.]+)?(?:/|\.rb\z)}.freeze
        BUNDLER = %w[bundler_setup bundler_require].freeze
        RAILS_KINDS = %w[initializer eager_load].freeze
        READ = "zoneinfo" # the files are the system's, the time is that of the code which reads them
        Code = Struct.new(:path, :kind)
        private_constant :RAILS, :BUNDLER_PATH, :BUNDLER, :RAILS_KINDS, :READ, :Code

        #: (Origin) -> void
        def initialize(origin)
          @origin = origin
          @names = {}
        end

        # Rows of all owners, the one that took most time first.
        #: (Boot) -> Array[Row]
        def parts(boot)
          nodes = boot.nodes.select { |node| boot.main?(node) }
          rows = nodes.group_by { |node| of(node) }.map { |name, part| row(name, part) }
          rows << Row.new(name: RUBY, own_ns: boot.before_ns, objects: boot.sizes_before.fetch("objects", 0),
                          files: boot.sizes_before.fetch("features", 0), compile_ns: 0)
          rows << Row.new(name: OUTSIDE, own_ns: boot.outside_ns, objects: boot.outside_objects, files: 0,
                          compile_ns: 0)
          rows.sort_by { |row| [-row.own_ns, row.name] }
        end

        # Gems, the one with the largest total first. A gem's total has what its files load, of other gems too.
        #: (Array[Node]) -> Array[Row]
        def gems(nodes)
          nodes.group_by { |node| gem(node) }.reject { |name, _| name.nil? }.map do |name, part|
            row(name, part).tap { |row| row.total_ns = Node.outermost(part).sum { |node| node.total[:wall] } }
          end.sort_by { |row| [-row.total_ns, row.name] }
        end

        # "Rails", "gems", …
        #: (Node) -> String
        def of(node)
          return "Bundler" if BUNDLER.include?(node.row.kind)
          return "Rails" if RAILS_KINDS.include?(node.row.kind)

          path = path_of(node)
          @names[path] ||= name_of(path)
        end

        # The gem that a load's file belongs to; nil: none.
        #: (Node) -> String?
        def gem(node) = gem_at(node.row.kind == READ ? node.row.from : node.row.path)

        # The gem that a file belongs to; nil: none.
        #: (String) -> String?
        def gem_at(path) = @origin.gem(Code.new(path, 0))

        # Is the file the application's?
        #: (String) -> bool
        def mine?(path) = !path.empty? && @origin.path?(path)

        private

        def path_of(node) = node.row.path.empty? || node.row.kind == READ ? node.row.from : node.row.path

        def row(name, nodes)
          Row.new(name: name, own_ns: nodes.sum { |node| node.own[:wall] },
                  objects: nodes.sum { |node| node.own[:objects] },
                  files: Node.files(nodes),
                  compile_ns: nodes.sum(&:compile_ns))
        end

        def name_of(path)
          return OUTSIDE if path.empty?
          return "Bundler" if path.match?(BUNDLER_PATH) && !path.include?("/bundler/gems/")
          return "RubyGems" if of_rubygems?(path)

          gem = @origin.gem(Code.new(path, 0))
          return "Rails" if RAILS.include?(gem)
          return GEMS if gem
          return APPLICATION if mine?(path)

          @origin.of(Code.new(path, 0)) == :stdlib ? STDLIB : GEMS
        end

        def of_rubygems?(path)
          return true if Application.specification?(path)

          path.match?(%r{/rubygems(?:/|\.rb\z)}) && !path.match?(%r{/gems/[^/]+-\d})
        end
      end
    end
  end
end

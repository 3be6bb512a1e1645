# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # The Ruby code that made a call: its line and gem, the file being loaded, and the phase of the program's start.
      # Loaders (RubyGems, Bundler, bootsnap, Zeitwerk, Ruby itself) work for other code, so their calls count for their
      # caller. RubyGems and Bundler count themselves if only they are on the stack, as in `bundle install`.
      class Places
        # path, line: the innermost Ruby code that is no loader; without such code the innermost Ruby code.
        # feature: the file being loaded, or the script.
        Place = Struct.new(:path, :line, :gem, :feature, :phase)
        LOADERS = %r{/rubygems(?:\.rb\z|/)|/bundled_gems\.rb\z|/bundler(?:-\d[^/]*)?/|/bundler\.rb\z|
                     /gems/(?:bootsnap|zeitwerk|bundler|polyglot)-\d[^/]*/|
                     /monitor\.rb\z|\A<internal:|/pitwall/}x.freeze
        # Loaders that also work for RubyGems and Bundler.
        INNER_LOADERS = %r{/rubygems/core_ext/|/bundled_gems\.rb\z|/gems/(?:bootsnap|zeitwerk|polyglot)-\d[^/]*/|
                           /monitor\.rb\z|\A<internal:|/pitwall/}x.freeze
        # Commands of RubyGems and Bundler.
        COMMANDS = %r{(?:\A|/)(?:bin|exe)/(?:bundler?|gem)[\d.]*\z}.freeze
        BUNDLER = %r{/bundler(?:\.rb\z|/)}.freeze
        GEM = %r{/(?:gems|bundler/gems)/([^/]+?)-(?:\d[^/]*|[0-9a-f]{7,40})/}.freeze
        STANDARD = %r{/lib/ruby/(?:\d|vendor_ruby|site_ruby)|/usr/lib/ruby/}.freeze
        LOADING = /\A(?:<(?:top \(required\)|main)>|\(main\))\z/.freeze
        # Phase → expression for a method's name or path. The innermost matching frame decides.
        PHASES = [["Bundler.setup", %r{/bundler/setup\.rb|\ABundler\.setup\z}],
                  ["Bundler.require", /\ABundler(?:::Runtime#|\.)require\z/], ["eager loading", /eager_load/],
                  ["initializers", %r{\ARails::Initializable#run_initializers\z|/config/initializers/}],
                  ["routes", %r{/config/routes\.rb\z}],
                  ["config/application.rb", %r{/config/application\.rb\z}],
                  ["config/environment.rb", %r{/config/environment\.rb\z}],
                  ["config/boot.rb", %r{/config/boot\.rb\z}],
                  ["at exit", /\A(?:Kernel#)?at_exit/]].freeze
        private_constant :LOADERS, :INNER_LOADERS, :COMMANDS, :BUNDLER, :GEM, :STANDARD, :LOADING, :PHASES

        # The gem of a file. "ruby" for Ruby's own library, "(application)" for any other file.
        #: (String) -> String
        def self.gem(path)
          found = path[GEM, 1]
          return found if found
          return "rubygems" if path.match?(%r{/rubygems(?:\.rb\z|/)})

          return "(application)" unless path.match?(STANDARD) || path.start_with?("<internal:")

          path.match?(BUNDLER) ? "bundler" : "ruby"
        end

        #: (Record::Segment) -> void
        def initialize(segment)
          @segment = segment
          @places = {}
          @phases = {}
          @features = {}
        end

        # The place of a stack's leaf.
        #: (Integer) -> Place
        def [](node) = @places[node] ||= place(node)

        private

        def place(node)
          found = responsible(node) { true } || innermost(node) { |frame| !frame.path.empty? }
          return Place.new("", 0, "(none)", feature(node), phase(node)) unless found

          path = @segment.frame(found).path
          Place.new(path, @segment.lines[found].to_i, Places.gem(path), feature(node), phase(node))
        end

        # The innermost frame that is no loader and for which the block is true.
        def responsible(node)
          found = innermost(node) { |frame| !frame.path.empty? && !LOADERS.match?(frame.path) && yield(frame) }
          return found if found && !COMMANDS.match?(@segment.frame(found).path)

          innermost(node) { |frame| !frame.path.empty? && !INNER_LOADERS.match?(frame.path) && yield(frame) }
        end

        def innermost(node)
          while node && node.positive?
            return node if yield(@segment.frame(node))

            node = @segment.parents[node]
          end
        end

        def feature(node)
          found = responsible(node) { |frame| LOADING.match?(frame.name) }
          found ? @segment.frame(found).path : ""
        end

        def phase(node)
          path = []
          while node && node.positive? && !@phases.key?(node)
            frame = @segment.frame(node)
            name = PHASES.find { |_, expression| expression.match?(frame.name) || expression.match?(frame.path) }&.first
            path << node
            break @phases[node] = name if name

            node = @segment.parents[node]
          end
          found = node && node.positive? ? @phases[node] : nil
          path.each { |passed| @phases[passed] = found }
          found || "elsewhere"
        end
      end
    end
  end
end

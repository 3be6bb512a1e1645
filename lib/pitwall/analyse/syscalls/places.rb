# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # Where in Ruby a call comes from: the line that asked, its gem, the file that was being loaded, and how far the program's start was. Lines of those
      # who load for others (RubyGems, Bundler, bootsnap, Zeitwerk, Ruby itself) pass the blame on to who called them; RubyGems' and Bundler's do not where
      # nobody but they called, as in `bundle install`.
      class Places
        # path, line: of the innermost Ruby code that is no loader's, or of the innermost; gem; feature: the file being loaded, or the script; phase
        Place = Struct.new(:path, :line, :gem, :feature, :phase)
        LOADERS = %r{/rubygems(?:\.rb\z|/)|/bundled_gems\.rb\z|/bundler(?:-\d[^/]*)?/|/bundler\.rb\z|/gems/(?:bootsnap|zeitwerk|bundler|polyglot)-\d[^/]*/|/monitor\.rb\z|\A<internal:|/pitwall/}.freeze
        # Those that load for RubyGems and Bundler as well, and their commands.
        PLUMBING = %r{/rubygems/core_ext/|/bundled_gems\.rb\z|/gems/(?:bootsnap|zeitwerk|polyglot)-\d[^/]*/|/monitor\.rb\z|\A<internal:|/pitwall/}.freeze
        COMMANDS = %r{(?:\A|/)(?:bin|exe)/(?:bundler?|gem)[\d.]*\z}.freeze
        BUNDLER = %r{/bundler(?:\.rb\z|/)}.freeze
        GEM = %r{/(?:gems|bundler/gems)/([^/]+?)-(?:\d[^/]*|[0-9a-f]{7,40})/}.freeze
        STANDARD = %r{/lib/ruby/(?:\d|vendor_ruby|site_ruby)|/usr/lib/ruby/}.freeze
        LOADING = /\A(?:<(?:top \(required\)|main)>|\(main\))\z/.freeze
        # The innermost frame that one of these fits says the phase: method's name or path.
        PHASES = [["Bundler.setup", %r{/bundler/setup\.rb|\ABundler\.setup\z}], ["Bundler.require", /\ABundler(?:::Runtime#|\.)require\z/], ["eager loading", /eager_load/],
                  ["initializers", %r{\ARails::Initializable#run_initializers\z|/config/initializers/}], ["routes", %r{/config/routes\.rb\z}],
                  ["config/application.rb", %r{/config/application\.rb\z}], ["config/environment.rb", %r{/config/environment\.rb\z}],
                  ["config/boot.rb", %r{/config/boot\.rb\z}], ["at exit", /\A(?:Kernel#)?at_exit/]].freeze
        private_constant :LOADERS, :PLUMBING, :COMMANDS, :BUNDLER, :GEM, :STANDARD, :LOADING, :PHASES

        # The gem a file belongs to; "ruby" for its own library, "(application)" for all else.
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

        #: (Integer) -> Place
        def [](node) = @places[node] ||= place(node)

        private

        def place(node)
          found = blamed(node) { true } || innermost(node) { |frame| !frame.path.empty? }
          return Place.new("", 0, "(none)", feature(node), phase(node)) unless found

          path = @segment.frame(found).path
          Place.new(path, @segment.lines[found].to_i, Places.gem(path), feature(node), phase(node))
        end

        # The innermost frame of those asked for that is no loader's.
        def blamed(node)
          found = innermost(node) { |frame| !frame.path.empty? && !LOADERS.match?(frame.path) && yield(frame) }
          return found if found && !COMMANDS.match?(@segment.frame(found).path)

          innermost(node) { |frame| !frame.path.empty? && !PLUMBING.match?(frame.path) && yield(frame) }
        end

        def innermost(node)
          while node && node.positive?
            return node if yield(@segment.frame(node))

            node = @segment.parents[node]
          end
        end

        def feature(node)
          found = blamed(node) { |frame| LOADING.match?(frame.name) }
          found ? @segment.frame(found).path : ""
        end

        def phase(node)
          way = []
          while node && node.positive? && !@phases.key?(node)
            frame = @segment.frame(node)
            name = PHASES.find { |_, expression| expression.match?(frame.name) || expression.match?(frame.path) }&.first
            way << node
            break @phases[node] = name if name

            node = @segment.parents[node]
          end
          found = node && node.positive? ? @phases[node] : nil
          way.each { |passed| @phases[passed] = found }
          found || "elsewhere"
        end
      end
    end
  end
end

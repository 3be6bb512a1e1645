# frozen_string_literal: true

module Pitwall
  module Analyse
    class ProfileChange
      # Matches the methods of both sides. A number stands for a name and a file; 0 is for code that is left out.
      #
      # These differences do not make a different method:
      # - the line, because code moves between revisions
      # - the folder of the revision, or the version in the path of a gem or Ruby
      # - the kind, because a C function of one Ruby may be Ruby code in the next
      # - the numbers in the name of a Rails template, because each process has others
      # Blocks of one method in one file are one, because only their lines differ.
      class Names
        # A method in the result. lines: where it is defined on each side (0: unknown).
        Name = Struct.new(:name, :path, :kind, :lines)

        GIT_GEM = %r{\A.*/bundler/gems/([^/]+)-\h{7,40}/}.freeze
        GEM = %r{\A.*/gems/([^/]+?)-\d[^/]*/}.freeze
        RUBY_LIBRARY = %r{\A.*/lib/ruby/(?:(?:site|vendor)_ruby/)?(?:\d+\.\d+[^/]*/)?}.freeze
        INTERNAL = /\A<internal:/.freeze
        # A path and line inside the name of an anonymous class or of evaluated code: "#<Class:/srv/app/a.rb:3>"
        PLACE = %r{(/[^\s:<>()"']+):\d+}.freeze
        # A path and line at the end of a name: "block in <main> (a.rb:3)"
        LAST_PLACE = /(?<= \()([^()]+):\d+(?=\)\z)/.freeze
        BLOCK = /\A(?:(?:block(?: \(\d+ levels\))?|rescue|ensure) in )+/.freeze
        # Numbers that a process gives the method of a Rails template: "_app_views_a_html_erb__2183651893247554002_7860"
        TEMPLATE = /_{2,}\d{6,}_\d+/.freeze
        private_constant :GIT_GEM, :GEM, :RUBY_LIBRARY, :INTERNAL, :PLACE, :LAST_PLACE, :BLOCK, :TEMPLATE

        # @param bases [Array<String?>] by side: the folder of its code
        # @param blocks [Boolean] whether blocks are different from their methods
        #: (Array[String?], ?blocks: bool) -> void
        def initialize(bases, blocks: true)
          @bases = bases.map { |base| base && !base.empty? ? "#{base.chomp("/")}/" : nil }
          @blocks = blocks
          @numbers = {}
          @names = [nil]
        end

        # Number of methods, plus 1.
        #: () -> Integer
        def size = @names.size

        # The method with this number.
        #: (Integer) -> Name
        def [](number) = @names[number]

        # Number of a method of one side.
        # @param side [Integer] 0 or 1
        #: (MethodInfo, Integer) -> Integer
        def number(method, side)
          base = @bases[side]
          key = [name(method.name, base), path(method.path, base)]
          at = @numbers[key] ||= begin
            @names << Name.new(*key, method.kind, [0, 0])
            @names.size - 1
          end
          lines = @names[at].lines
          # Several blocks have the line of the first one.
          lines[side] = method.line if method.line.positive? && (lines[side].zero? || method.line < lines[side])
          at
        end

        private

        def name(name, base)
          name = name.sub(BLOCK, "") unless @blocks
          name = name.sub(TEMPLATE, "") if name.include?("__")
          name = name.sub(LAST_PLACE) { path(Regexp.last_match(1), base) } if name.end_with?(")")
          name.include?("/") ? name.gsub(PLACE) { path(Regexp.last_match(1), base) } : name
        end

        def path(path, base)
          return "" if path.match?(INTERNAL)
          return path.gsub(PLACE) { path(Regexp.last_match(1), base) } if path.start_with?("(eval")
          return path.delete_prefix(base) if base && path.start_with?(base)

          path.sub(GIT_GEM, 'gems/\1/').sub(GEM, 'gems/\1/').sub(RUBY_LIBRARY, "ruby/")
        end
      end
    end
  end
end

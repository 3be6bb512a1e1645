# frozen_string_literal: true

module Pitwall
  module Analyse
    class ProfileChange
      # Says which method of one side is which of the other. Numbers stand for a name and a file; 0 stands for what is left out.
      #
      # Lines of code move between revisions, revisions are built in folders of their own, gems and Rubies are installed
      # under their versions, and what was a C function in one Ruby is written in Ruby in the next: none of that makes
      # another method. Blocks of one method in one file are one, since only their lines tell them apart.
      class Names
        # What stands for a method in the result; line is where it is defined (0: unknown) by side.
        Name = Struct.new(:name, :path, :kind, :lines)

        GIT_GEM = %r{\A.*/bundler/gems/([^/]+)-\h{7,40}/}.freeze
        GEM = %r{\A.*/gems/([^/]+?)-\d[^/]*/}.freeze
        RUBY_LIBRARY = %r{\A.*/lib/ruby/(?:(?:site|vendor)_ruby/)?(?:\d+\.\d+[^/]*/)?}.freeze
        INTERNAL = /\A<internal:/.freeze
        # A place inside the name of an anonymous class or of evaluated code: "#<Class:/srv/app/a.rb:3>"; and one that ends a
        # name: "block in <main> (a.rb:3)".
        PLACE = %r{(/[^\s:<>()"']+):\d+}.freeze
        LAST_PLACE = /(?<= \()([^()]+):\d+(?=\)\z)/.freeze
        BLOCK = /\A(?:(?:block(?: \(\d+ levels\))?|rescue|ensure) in )+/.freeze
        private_constant :GIT_GEM, :GEM, :RUBY_LIBRARY, :INTERNAL, :PLACE, :LAST_PLACE, :BLOCK

        # @param bases [Array<String?>] by side: the folder that holds its code
        # @param blocks [Boolean] whether a block is told from its method
        #: (Array[String?], ?blocks: bool) -> void
        def initialize(bases, blocks: true)
          @bases = bases.map { |base| base && !base.empty? ? "#{base.chomp("/")}/" : nil }
          @blocks = blocks
          @numbers = {}
          @names = [nil]
        end

        #: () -> Integer
        def size = @names.size

        #: (Integer) -> Name
        def [](number) = @names[number]

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
          # Of several blocks the first.
          lines[side] = method.line if method.line.positive? && (lines[side].zero? || method.line < lines[side])
          at
        end

        private

        def name(name, base)
          name = name.sub(BLOCK, "") unless @blocks
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

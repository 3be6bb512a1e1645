# frozen_string_literal: true

require "shellwords"
require "pitwall/cli/support/words"
require "pitwall/errors"
require "pitwall/workspace/repository"
require "pitwall/workspace/side"

module Pitwall
  module CLI
    # The sides of a comparison as typed, in the order of their options. Each option is a side.
    # `--and` before an option adds the option to the preceding side.
    # A single side is compared with the code as it is; the working tree is compared with HEAD.
    #
    #   sides = Sides.new
    #   sides.define_options(parser)               # then parse
    #   list = sides.to_a(script: "bench.rb")      # => [Workspace::Side, Workspace::Side]
    #   Workspace.open(script: "bench.rb", **sides.settings) { |workspace| workspace.subjects(list) }
    class Sides
      GEM = /\A([\w.-]+)@([0-9]\w*(?:\.\w+)*)\z/.freeze
      VARIABLE = /\A([A-Za-z_]\w*)=(.*)\z/m.freeze
      METHOD = /\A[A-Z]\w*(?:::[A-Z]\w*)*[#.][^\s#.]+\z/.freeze
      AS_IS = "as is"
      CHANGES = "your changes" # the working tree
      COMMIT = /\A\h{12,64}\z/.freeze
      SHORT = 8 # digits of a commit in a name
      private_constant :GEM, :VARIABLE, :METHOD, :AS_IS, :CHANGES, :COMMIT, :SHORT

      # @return [Hash] arguments for Workspace.new: carry, configure, bundle
      attr_reader :settings

      # @param dir folder that typed paths are relative to
      #: (?dir: String) -> void
      def initialize(dir: Dir.pwd)
        @dir = dir
        @sides = []
        @settings = { carry: [], configure: [], bundle: true }
      end

      # Adds the options that define sides.
      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("Sides: each option is one; a single side is compared with the code as it is")
        define_sides(parser)
        parser.separator("More about sides")
        parser.on("--and", "the next option belongs to the same side: --rev main --and --env X=1") { join }
        parser.on("--as NAME", "name of the preceding side, in the report") { |name| rename(name) }
        parser.on("--carry FILE", "copy an ignored file to clones (as carry: in .pitwall.yml); repeatable") do |file|
          @settings[:carry] << file
        end
        parser.on("--no-bundle", "neither install nor load the bundle of clones that have a Gemfile") do
          @settings[:bundle] = false
        end
        parser.on("--configure ARGS", "arguments of configure for --ruby-src") do |text|
          @settings[:configure] += words("--configure", text)
        end
      end

      # Whether any side was named.
      #: () -> bool
      def any? = @sides.any?

      # The code of a single -e that is joined to no other option; nil for other sides.
      #: () -> String?
      def code_alone
        only = @sides.first
        only.code if @sides.one? && only == Workspace::Side.new(code: only.code, name: only.name)
      end

      # At least two sides, with different names.
      # @param script [String, nil] the benchmark file
      # @param command [Array<String>, nil] the command that is measured instead of a benchmark file
      # Raises UsageError.
      #: (?script: String?, ?command: Array[String]?) -> Array[Workspace::Side]
      def to_a(script: nil, command: nil)
        raise UsageError, "--and: no option follows it that it could join" if @join

        check_what_runs(script, command)
        sides = share_code(@sides.map(&:dup))
        if sides.empty?
          raise UsageError, "nothing to compare: name a side (--rev, --dirty, --ruby, --env, --gem, --patch, " \
                            "--stub, -e), such as --rev main, or two recordings: A.pit B.pit"
        end

        sides = [counterpart(sides.first), *sides] if sides.one?
        check_code(sides, script, command)
        name(sides)
      end

      private

      def define_sides(parser)
        parser.on("--rev REV", "a git revision, built in a clone") do |rev|
          add("--rev", :rev, rev) { |side| refuse_both("--rev", side.dirty, "--dirty") }
        end
        parser.on("--dirty", "the working tree with its uncommitted changes") do
          add("--dirty", :dirty, true) { |side| refuse_both("--dirty", side.rev, "--rev") }
        end
        parser.on("--ruby RUBY", "an interpreter, with flags in the same quotes: \"ruby3.4 --yjit\"") do |text|
          add("--ruby", :ruby, words("--ruby", text)) { |side| refuse_both("--ruby", side.ruby_source, "--ruby-src") }
        end
        parser.on("--ruby-src DIR@REV", "an interpreter built from a revision of its source") do |text|
          add("--ruby-src", :ruby_source, source(text)) { |side| refuse_both("--ruby-src", side.ruby, "--ruby") }
        end
        parser.on("--env NAME=VALUE", "an environment variable") { |text| merge(:env, *variable(text)) }
        parser.on("--gem NAME@VERSION", "another version of a gem") { |text| merge(:gems, *gem_version(text)) }
        parser.on("--patch FILE", "a .rb file loaded before the benchmark (it must load the code that it patches), " \
                                  "or a .diff applied to a clone") do |file|
          patch(file)
        end
        parser.on("--stub METHOD", "empty a method, to test a suspicion: Foo#bar or Foo.bar") do |text|
          add("--stub", :stub, stub_method(text))
        end
        parser.on("-e CODE", "code to measure; a single -e is measured on all sides") { |code| add("-e", :code, code) }
      end

      # --- building sides

      # Adds an option to a new side; after --and to the last side.
      # @yield [Workspace::Side] raises when the side has a conflicting option
      def add(option, field, value)
        side = joined_side || begin_side
        if side[field]
          raise UsageError, "#{option} twice for one side: leave out the --and before it to make it another side"
        end

        yield side if block_given?
        side[field] = value
      end

      def merge(field, name, value)
        side = joined_side || begin_side
        if side[field].key?(name)
          raise UsageError, "#{name} twice for one side: leave out the --and before it to make it another side"
        end

        side[field] = side[field].merge(name => value)
      end

      def patch(file)
        path = File.expand_path(file, @dir)
        raise UsageError, "--patch #{file}: no such file" unless File.file?(path)
        unless path.end_with?(".rb", ".diff", ".patch")
          raise UsageError, "--patch #{file}: takes a .rb file (loaded before the benchmark) or a .diff or .patch " \
                            "(applied to a clone)"
        end

        side = joined_side || begin_side
        side.patches += [path]
      end

      def begin_side = @sides.push(Workspace::Side.new).last

      # The last side after --and, else nil.
      def joined_side
        @join, join = nil, @join
        @sides.last if join
      end

      def join
        raise UsageError, "--and: no side stands before it" if @sides.empty?
        raise UsageError, "--and twice in a row" if @join

        @join = true
      end

      def rename(name)
        raise UsageError, "--as #{name}: no side stands before it" if @sides.empty?
        raise UsageError, "--as needs a name" if name.strip.empty?

        @sides.last.name = name
      end

      def refuse_both(option, other, name)
        raise UsageError, "#{option} and #{name} can't be the same side: leave out the --and" if other
      end

      # --- reading values

      def words(option, text) = Words.parse(text, option: option)

      # "DIR@REV" → [DIR, REV]. Both may contain an @, so the shortest existing folder is taken.
      def source(text)
        folders = text.size.times.select { |at| text[at] == "@" && at.positive? }.map { |at| text[0, at] }
        folder = folders.find { |each| File.directory?(File.expand_path(each, @dir)) }
        revision = text[(folder.size + 1)..] if folder
        if revision.to_s.empty?
          raise UsageError, "--ruby-src #{text}: write DIR@REV, a folder with Ruby's source and a revision of it"
        end

        [File.expand_path(folder, @dir), revision]
      end

      def variable(text)
        match = VARIABLE.match(text) or raise UsageError, "--env #{text}: write NAME=VALUE"
        match.captures
      end

      def gem_version(text)
        match = GEM.match(text) or raise UsageError, "--gem #{text}: write NAME@VERSION, such as rack@3.1.0"
        match.captures
      end

      def stub_method(text)
        text.match?(METHOD) ? text : raise(UsageError, "--stub #{text}: write Class#method or Class.method")
      end

      # --- the measured code

      def check_what_runs(script, command)
        coded = @sides.any?(&:code)
        raise UsageError, "-e and #{script}: measure one or the other" if coded && script
        raise UsageError, "-e and -- #{command.first}: measure one or the other" if coded && command
        raise UsageError, "#{script} and -- #{command.first}: measure one or the other" if script && command
        unless script.nil? || File.file?(File.expand_path(script, @dir))
          raise UsageError, "#{script}: no such file#{from_revision(script)}"
        end

        return unless command && (stubbed = @sides.find(&:stub))

        raise UsageError, "--stub #{stubbed.stub} works with BENCH.rb or -e, not with -- #{command.first}"
      end

      def from_revision(script)
        "; it is taken from the working tree: git show REV:#{script} > #{script}" if @sides.any?(&:rev)
      end

      # A single -e beside other sides, as in `--ruby a --ruby b -e CODE`, is no side: all sides run its code.
      def share_code(sides)
        coded = sides.select(&:code)
        bare = coded.find { |side| side == Workspace::Side.new(code: side.code, name: side.name) }
        return sides unless coded.one? && bare && sides.size > 1

        rest = sides.reject { |side| side.equal?(bare) }
        rest.each { |side| side.code = bare.code }
      end

      # The base for a single side: the code as it is; HEAD when the side is the working tree.
      def counterpart(side)
        tree_alone = Workspace::Side.new(dirty: true, name: side.name, code: side.code)
        Workspace::Side.new(rev: ("HEAD" if side == tree_alone), code: side.code)
      end

      def check_code(sides, script, command)
        return if script || command

        coded, rest = sides.partition(&:code)
        raise UsageError, "nothing to run: name BENCH.rb, -e CODE or -- COMMAND" if coded.empty?
        if rest.any?
          raise UsageError, "#{label(rest.first)}: no code; join it to one: #{option(rest.first)} --and -e CODE"
        end

        return unless @sides.one? && sides.last == Workspace::Side.new(code: sides.last.code, name: sides.last.name)

        raise UsageError, "-e: nothing to compare it with; give another -e, or another side"
      end

      # --- names

      def name(sides)
        codes = sides.map(&:code).uniq
        shared = codes.one?
        @letters = codes.compact.zip("A"..).to_h
        @branch = branch(sides)
        names = sides.map { |side| side.name || label(side, code: !shared) }
        # Interpreters with the same base name get their paths as names.
        alike = sides.each_index.select { |at| names.count(names[at]) > 1 && sides[at].ruby && !sides[at].name }
        alike.each { |at| names[at] = label(sides[at], code: !shared, paths: true) }
        seen = Hash.new(0)
        sides.zip(names) { |side, name| side.name = (seen[name] += 1) == 1 ? name : numbered(name, names, seen) }
        sides
      end

      def numbered(name, names, seen)
        number = seen[name]
        number += 1 while names.include?("#{name} (#{number})")
        "#{name} (#{number})"
      end

      def label(side, code: true, paths: false)
        parts = [(revision(side.rev) if side.rev), (CHANGES if side.dirty), (ruby_label(side.ruby, paths) if side.ruby),
                 (source_label(side.ruby_source) if side.ruby_source)]
        parts.concat(side.env.map { |pair| pair.join("=") }, side.gems.map { |pair| pair.join("@") },
                     side.patches.map { |path| File.basename(path) })
        parts << "without #{side.stub}" if side.stub
        parts << @letters.to_h.fetch(side.code, side.code) if code && side.code
        parts.compact!
        parts.empty? ? AS_IS : parts.join(" + ")
      end

      def ruby_label(words, paths) = [paths ? words.first : File.basename(words.first), *words.drop(1)].join(" ")

      def source_label(source) = "#{File.basename(source.first)}@#{source.last}"

      # A revision as labels show it: HEAD's branch for HEAD, a commit's first digits, a branch without refs/heads/.
      def revision(typed)
        return @branch if typed == "HEAD" && @branch

        typed.match?(COMMIT) ? typed[0, SHORT] : typed.sub(%r{\Arefs/(?:heads|tags|remotes)/}, "")
      end

      # The name of HEAD's branch. nil when no branch is checked out, or when another side is that branch.
      def branch(sides)
        return if sides.none? { |side| side.rev == "HEAD" }

        name = Workspace::Repository.find(@dir)&.branch
        name unless sides.any? { |side| side.rev && revision_named?(side.rev, name) }
      end

      def revision_named?(typed, name) = [name, "refs/heads/#{name}"].include?(typed)

      # The first option of a side as it was typed, for messages.
      def option(side)
        return "--rev #{side.rev}" if side.rev
        return "--ruby #{Shellwords.join(side.ruby).inspect}" if side.ruby

        side.dirty ? "--dirty" : "…"
      end
    end
  end
end

# frozen_string_literal: true

require "pathname"
require "rbconfig"
require "shellwords"
require "pitwall/errors"
require "pitwall/bench/subject"
require "pitwall/workspace/carried_files"
require "pitwall/workspace/failures"
require "pitwall/workspace/gem_versions"
require "pitwall/workspace/interpreter"
require "pitwall/workspace/outer_environment"
require "pitwall/workspace/repository"
require "pitwall/workspace/ruby_source"
require "pitwall/workspace/side"
require "pitwall/workspace/store"
require "pitwall/workspace/tree"
require "pitwall/workspace/variables"

module Pitwall
  # Makes of what the user calls a side (a revision, the working tree, an interpreter, a gem's version…) something that can run: a
  # {Pitwall::Bench::Subject}.
  #
  # What has to be built is built in clones in a cache folder ({Store}); the user's tree and repository are only read.
  # Where one side is a tree, all are: a side that names none is a copy of the working tree, with uncommitted changes and
  # untracked files, so that all run from equally long paths with bundles and extensions made in the same way.
  class Workspace
    CACHE_LIMIT_BYTES = 5 << 30
    SETTINGS_FILE = ".pitwall.yml"

    # What was built stays usable until the block's end.
    #: [T] (**untyped) { (Workspace) -> T } -> T
    def self.open(**settings)
      workspace = new(**settings)
      yield workspace
    ensure
      workspace&.close
    end

    # Removes from the cache what was used longest ago until the rest fits. What is in use stays.
    # @return [Integer] bytes left
    #: (?limit_bytes: Integer, ?place: String) -> Integer
    def self.prune(limit_bytes: CACHE_LIMIT_BYTES, place: Store.place)
      return 0 unless File.directory?(place)

      store = Store.new(place)
      store.prune(limit_bytes)
    ensure
      store&.close
    end

    # @return [Array<String>] what the user should know
    attr_reader :notes

    # @param dir [String] where the user is: relative paths, the repository, the folder that the same one in each clone stands for
    # @param script [String, nil] the benchmark; taken as it stands, into each clone where it lies inside the repository
    # @param command [Array<String>, nil] what is measured instead
    # @param carry [Array<String>] ignored files to take into clones, beside those that .pitwall.yml lists
    # @param configure [Array<String>] arguments for interpreters built from source
    # @param bundle [Boolean] whether clones with a Gemfile get their bundle
    # @param ruby [Array<String>] the interpreter of sides that name none
    # @param on_step [Proc] is told in words what is being done
    # @param place [String] the cache folder
    #: (?dir: String, ?script: String?, ?command: Array[String]?, ?carry: Array[String], ?configure: Array[String], ?bundle: bool,
    #:  ?ruby: Array[String]?, ?place: String?, ?cache_limit_bytes: Integer, ?environment: Hash[String, String], ?on_step: ^(String) -> void) -> void
    def initialize(dir: Dir.pwd, script: nil, command: nil, carry: [], configure: [], bundle: true, ruby: nil, place: nil,
                   cache_limit_bytes: CACHE_LIMIT_BYTES, environment: ENV, on_step: ->(_) {})
      @dir = File.realpath(dir)
      @script = script && real(File.expand_path(script, dir))
      @command = command
      @carry = carry
      @configure = configure
      @bundle = bundle
      @outer = OuterEnvironment.new(environment)
      @ruby = ruby || default_ruby
      @cache_limit_bytes = cache_limit_bytes
      @on_step = on_step
      @notes = []
      @interpreters = {}
      @trees = []
      @store = Store.new(place || Store.place(environment), on_step: on_step)
      @notes << "the cache folder can't be written: what is built now is built again the next time; PITWALL_CACHE names another" if @store.temporary
    end

    # Builds what is missing. The subjects are good until {#close}.
    # Raises UsageError, BuildFailed.
    #: (Array[Side]) -> Array[Pitwall::Bench::Subject]
    def subjects(sides)
      refuse_unchanged(sides)
      built = even_out(sides).map { |side| subject(side) }
      @store.prune(@cache_limit_bytes) if @store.grown
      built
    rescue SystemCallError => error
      raise unless [Errno::ENOSPC, Errno::EDQUOT, Errno::EROFS].any? { |each| each === error }

      raise BuildFailed, "#{@store.root}: #{SystemCallError.new(error.errno).message}; free some room, or name another folder with PITWALL_CACHE"
    end

    # What a side said when it failed, with paths as they are in the user's tree, and what helps where it missed a file that
    # git ignores: clones don't have that.
    #: (String) -> String
    def explained(message)
      text = @trees.map(&:path).inject(message) { |said, path| said.gsub("#{path}/", "") }
      missing = @trees.empty? ? nil : missing_files(text).first
      missing ? "#{text}; git ignores #{missing}, so clones don't have it: --carry #{Shellwords.escape(missing)} takes it along" : text
    end

    # Lets the cache go. Waits for nothing.
    #: () -> void
    def close
      @trees.each(&:close)
      @store.close
    end

    private

    # The working tree against a revision that it doesn't differ from: the same would be measured twice.
    def refuse_unchanged(sides)
      sides.select(&:dirty).each do |side|
        same = sides.find { |other| other.rev && alike?(side, other) && repository.revision(other.rev).identity == working_tree.identity } or next
        raise UsageError, "--dirty: nothing to compare: the working tree has no changes, it is what #{same.rev} is; name another revision (--rev main --dirty), " \
                          "or --control to see the noise of measuring"
      end
    end

    # But for the tree that they run in.
    def alike?(*sides) = sides.map { |side| side.dup.tap { |copy| copy.rev = copy.dirty = copy.name = nil } }.uniq.one?

    # A comparison of unlike things would measure the unlikeness.
    def even_out(sides)
      @scripted_rubies = sides.any? { |side| side.ruby && side.ruby.size > 1 && !interpreter(side).plain? }
      @overridden = sides.any? { |side| side.gems.any? }
      # Bundler writes beside the Gemfile, and a bundle is one Ruby's.
      bundled_anew = @overridden || (@outer.bundled? && sides.any? { |side| side.ruby || side.ruby_source })
      return sides if sides.none?(&:tree?) && !(bundled_anew && @bundle && bundled_project?)

      sides.map { |side| side.tree? ? side : side.dup.tap { |copy| copy.dirty = true } }
    end

    def bundled_project?
      found = Repository.find(@dir) or return false
      !user_gemfile(found, @outer["BUNDLE_GEMFILE"]).nil?
    end

    def subject(side)
      interpreter = interpreter(side)
      facts = { "ruby" => interpreter.description }
      tree = tree(side, interpreter, facts) if side.tree?
      variables = Variables.new(@outer, side)
      variables.in_clone(bundle: bundle_of(tree, side), load: loads_bundle?, gemfile: outside_gemfile) if tree
      requires = side.scripts
      requires = [wanted_gems(side, interpreter, variables), *requires] if side.gems.any? && !tree&.gemfile
      own_ruby(side, interpreter, variables) if @command
      Pitwall::Bench::Subject.new(
        name: side.name, ruby: interpreter.words, dir: tree ? same_folder(tree) : @dir,
        script: (script_in(tree) unless side.code || @command), code: side.code, command: @command,
        env: (@command ? variables.with_options(requires.map { |path| "-r#{path}" }) : variables).to_h, requires: @command ? [] : requires,
        stub: side.stub, root: tree&.path, facts: facts.merge(facts_of(side))
      )
    end

    def bundle_of(tree, side)
      return unless tree.gemfile

      @overridden ? tree.bundle_with(side.gems) : tree.bundle_environment
    end

    # A command says itself whether it wants the bundle (`bundle exec`); loading it where it isn't wanted would be measured too.
    def loads_bundle? = !@command || @overridden || @outer.bundled?

    def wanted_gems(side, interpreter, variables)
      versions = GemVersions.new(@store, interpreter, dir: @dir, env: @outer.for_builds, on_step: @on_step)
      folders, activation = versions.prepare(side.name || side.gems.keys.first, side.gems)
      variables.with_gem_path(folders + interpreter.gem_path) if folders.any?
      activation
    end

    # `ruby`, `bundle` and scripts that begin with `#!/usr/bin/env ruby` find the side's own.
    def own_ruby(side, interpreter, variables)
      return unless side.ruby || side.ruby_source || @scripted_rubies

      key = Store.key("stand-in", interpreter.words, @scripted_rubies)
      folder = @store.fetch("sets", key) { |made| interpreter.stand_in(made, script: @scripted_rubies) }
      path = (side.env["PATH"] || @outer["PATH"]).to_s.split(":")
      variables.with_programs_of(folder, *(interpreter.bindir unless path.include?(interpreter.bindir)))
      variables.with_options(interpreter.flags) unless @scripted_rubies
    end

    # Files that a message names, which the user's tree has and git ignores; relative to where the user is.
    def missing_files(text)
      words = text.scan(%r{[^\s'"`(),;]+}).map { |word| word.chomp(":") }.select { |word| word.match?(/[.\/]/) }
      words.flat_map { |word| [word, "#{word}.rb"] }.uniq.flat_map { |name| ["", "#{repository.prefix}/"].map { |base| name.start_with?("/") ? nil : File.join(repository.top, base, name) } }
           .compact.map { |path| File.expand_path(path) }.uniq
           .select { |path| repository.inside(path) && File.exist?(path) && repository.ignored?(repository.inside(path)) }
           .map { |path| Pathname(path).relative_path_from(Pathname(@dir)).to_s }
    end

    # --- the interpreter

    def interpreter(side)
      key = [side.ruby, side.ruby_source]
      @interpreters[key] ||= begin
        program, *flags = side.ruby || (side.ruby_source ? [built_ruby(*side.ruby_source)] : @ruby)
        Interpreter.new([located(program), *flags], dir: @dir, env: @outer.unbundled)
      end
    end

    def located(program)
      return File.expand_path(program, @dir) if program.include?("/")

      in_path(program) or raise UsageError, "cannot run #{program}: there is none in PATH; --ruby takes the path of a Ruby, or its name in PATH"
    end

    def in_path(program)
      candidates = @outer["PATH"].to_s.split(":").map { |folder| File.join(folder, program) }
      candidates.find { |path| File.file?(path) && File.executable?(path) }
    end

    def built_ruby(folder, revision)
      program, = RubySource.new(@store, arguments: @configure, outer: @outer, on_step: @on_step).build(File.expand_path(folder, @dir), revision)
      program
    end

    # A command runs whatever `ruby` is.
    def default_ruby = [(in_path("ruby") if @command) || RbConfig.ruby]

    # --- the tree

    def repository = @repository ||= Repository.at(@dir)

    def tree(side, interpreter, facts)
      content = side.rev ? repository.revision(side.rev) : working_tree
      revision = content.commit ? content.commit[0, 10] : "no commit yet"
      facts["revision"] = content.commit.to_s
      facts["changes"] = "uncommitted" if content.changed
      facts["title"] = content.title if content.title
      made = Tree.new(@store, plan("#{side.name || side.rev || "working tree"} (#{revision})", content, side, interpreter), on_step: @on_step)
      # Noted before it is built: an interrupt leaves it to `close`.
      @trees << made
      made.build(script: placed_script)
    end

    # Read once: the sides see the same, whatever is edited meanwhile.
    def working_tree = @working_tree ||= repository.dirty(scratch: -> { @store.scratch("dirty") })

    def plan(name, content, side, interpreter)
      wished = side.env["BUNDLE_GEMFILE"] || @outer["BUNDLE_GEMFILE"]
      own = user_gemfile(repository, wished)
      Tree::Plan.new(
        side: name, content: content, patches: side.diffs, carried: carried, interpreter: interpreter, home: gem_home(interpreter),
        more_gems: [own && Bundle.own_gems(own, interpreter, @outer)].compact, base: @outer.for_builds, prefix: repository.prefix,
        gemfile: wished && own && repository.inside(own), bundle: @bundle,
        lock: own && Bundle.lock_of(own).then { |lock| lock if File.file?(lock) }, settings: own ? Bundle.settings(own) : ""
      )
    end

    # The Gemfile that holds for the user.
    def user_gemfile(repository, wished)
      return Bundle.find(@dir, repository.top) unless wished

      path = File.expand_path(wished, @dir)
      real(path) if File.file?(path) && repository.inside(real(path))
    end

    # A Gemfile that the user names and that no revision has: it holds for all sides.
    def outside_gemfile
      wished = @outer["BUNDLE_GEMFILE"]
      return if wished.to_s.empty? || @outer.bundled?

      path = File.expand_path(wished, @dir)
      path if File.file?(path) && !repository.inside(real(path))
    end

    def gem_home(interpreter) = @store.fetch("gems", Store.key(interpreter.abi)) { nil }

    def carried
      @carried ||= CarriedFiles.new(repository.top, @carry.map { |path| [path, @dir] } + listed_files.map { |path| [path, repository.top] })
    end

    def listed_files
      file = File.join(repository.top, SETTINGS_FILE)
      return [] unless File.file?(file)

      require "yaml"
      settings = YAML.safe_load(File.read(file))
      list = settings.is_a?(Hash) ? settings["carry"] : nil
      return Array(list) if Array(list).all?(String)

      raise UsageError, "#{file}: carry: takes a list of paths"
    rescue Psych::SyntaxError => error
      raise UsageError, "#{file}:#{error.line}: #{error.problem}"
    end

    def placed_script
      relative = @script && repository.inside(@script)
      [@script, relative] if relative
    end

    def script_in(tree)
      relative = @script && tree && repository.inside(@script)
      relative ? File.join(tree.path, relative) : @script
    end

    def same_folder(tree)
      folder = File.join(tree.path, repository.prefix).chomp("/")
      FileUtils.mkdir_p(folder)
      folder
    end

    def facts_of(side)
      { "code" => side.code.to_s.strip.gsub(/\s+/, " "), "env" => side.env.map { |name, value| "#{name}=#{value}" }.join(" "), "gems" => side.gems.map { |pair| pair.join("@") }.join(" "),
        "patches" => side.patches.map { |path| File.basename(path) }.join(" "), "stub" => side.stub.to_s,
        "ruby_source" => side.ruby_source&.join("@").to_s, "flags" => side.ruby.to_a.drop(1).join(" ") }.reject { |_, text| text.empty? }
    end

    def real(path)
      raise Errno::ENOENT unless File.file?(path)

      File.join(File.realpath(File.dirname(path)), File.basename(path))
    rescue SystemCallError
      raise UsageError, "#{path}: no such file"
    end
  end
end

# frozen_string_literal: true

require "pathname"
require "rbconfig"
require "shellwords"
require "pitwall/errors"
require "pitwall/bench/subject"
require "pitwall/workspace/carried_files"
require "pitwall/workspace/commit_range"
require "pitwall/workspace/failures"
require "pitwall/workspace/gem_versions"
require "pitwall/workspace/git"
require "pitwall/workspace/interpreter"
require "pitwall/workspace/outer_environment"
require "pitwall/workspace/reach"
require "pitwall/workspace/repository"
require "pitwall/workspace/ruby_source"
require "pitwall/workspace/side"
require "pitwall/workspace/store"
require "pitwall/workspace/tree"
require "pitwall/workspace/variables"

module Pitwall
  # Builds the sides of a comparison. A side is e.g. a revision, the working tree, an interpreter or a gem's version.
  # The result for each side is a {Pitwall::Bench::Subject}, which can be run.
  #
  # Sides are built in clones in a cache folder ({Store}). The user's tree and repository are only read.
  # When one side needs a clone, all sides get one. A side that names no revision then gets a copy of the working tree,
  # with uncommitted changes and untracked files. So all sides run from paths of equal length, and their bundles and
  # extensions are built in the same way.
  class Workspace
    CACHE_LIMIT_BYTES = 5 << 30
    SETTINGS_FILE = ".pitwall.yml"

    # Yields a workspace. Its clones, gems and interpreters stay usable until the block ends.
    # @param settings arguments of {#initialize}
    #: [T] (**untyped) { (Workspace) -> T } -> T
    def self.open(**settings)
      workspace = new(**settings)
      yield workspace
    ensure
      workspace&.close
    end

    # Removes the least recently used entries from the cache until the rest fits. Entries in use stay.
    # @param limit_bytes size that the cache may have
    # @param place the cache folder
    # @return [Integer] size of the cache in bytes
    #: (?limit_bytes: Integer, ?place: String) -> Integer
    def self.prune(limit_bytes: CACHE_LIMIT_BYTES, place: Store.place)
      return 0 unless File.directory?(place)

      store = Store.new(place)
      store.prune(limit_bytes)
    ensure
      store&.close
    end

    # @return [Array<String>] messages for the user
    attr_reader :notes

    # @param dir [String] the working directory: relative paths start here, and its repository is used;
    #   sides in clones run in the same folder of their clone
    # @param script [String, nil] the benchmark file; the user's version is copied into each clone when the file lies
    #   inside the repository
    # @param script_text [String, nil] a file with another content of the benchmark file, which need not exist then
    # @param command [Array<String>, nil] the command that is measured instead of a benchmark file
    # @param carry [Array<String>] ignored files to copy into clones, beside those that .pitwall.yml lists
    # @param configure [Array<String>] arguments of `configure` for interpreters built from source
    # @param bundle [Boolean] whether clones with a Gemfile get their bundle
    # @param ruby [Array<String>] the interpreter of sides that name none
    # @param place [String] the cache folder
    # @param cache_limit_bytes [Integer] size that the cache may have
    # @param environment [Hash] the environment variables
    # @param on_step [Proc] called with a text at each step
    #: (?dir: String, ?script: String?, ?script_text: String?, ?command: Array[String]?, ?carry: Array[String],
    #:  ?configure: Array[String], ?bundle: bool, ?ruby: Array[String]?, ?place: String?, ?cache_limit_bytes: Integer,
    #:  ?environment: Hash[String, String], ?on_step: ^(String) -> void) -> void
    def initialize(dir: Dir.pwd, script: nil, script_text: nil, command: nil, carry: [], configure: [], bundle: true,
                   ruby: nil, place: nil, cache_limit_bytes: CACHE_LIMIT_BYTES, environment: ENV, on_step: ->(_) {})
      @dir = File.realpath(dir)
      @script = script && (script_text ? File.expand_path(script, @dir) : real(File.expand_path(script, dir)))
      @script_text = script_text || @script
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
      @contents = []
      @store = Store.new(place || Store.place(environment), on_step: on_step)
      if @store.temporary
        @notes << "the cache folder can't be written: what is built now is built again the next time; " \
                  "PITWALL_CACHE names another"
      end
    end

    # Builds the sides, as far as the cache doesn't have them. The subjects are usable until {#close}.
    # Raises UsageError, BuildFailed.
    #: (Array[Side]) -> Array[Pitwall::Bench::Subject]
    def subjects(sides)
      refuse_unchanged(sides)
      built = unify(sides).map { |side| subject(side) }
      @store.prune(@cache_limit_bytes) if @store.grown
      built
    rescue SystemCallError => error
      raise unless [Errno::ENOSPC, Errno::EDQUOT, Errno::EROFS].any? { |each| each === error }

      raise BuildFailed, "#{@store.root}: #{SystemCallError.new(error.errno).message}; free some room, " \
                         "or name another folder with PITWALL_CACHE"
    end

    # A side's error message with paths relative to the clone. When the message names a file that git ignores, and that
    # clones thus lack, the text ends with the option that copies the file.
    #: (String) -> String
    def explain(message)
      built = @trees.map(&:path).reject { |path| path.to_s.empty? }
      text = built.inject(message) { |result, path| result.gsub("#{path}/", "") }
      missing = @trees.empty? ? nil : missing_files(text).first
      return text unless missing

      "#{text}; git ignores #{missing}, so clones don't have it: --carry #{Shellwords.escape(missing)} takes it along"
    end

    # Facts about what was measured, from which a proof is made; nil without a repository.
    #
    # folder:    path of the working directory in the repository
    # benchmark: path of the benchmark file in the repository and the id of its content; nil without such a file
    # listing:   digest of the last side's files without the benchmark file, see {Repository#listing}
    #: () -> Hash[String, untyped]?
    def provenance
      return if @contents.empty?

      source, path = placed_script
      content = @contents.last
      { "folder" => repository.prefix,
        "benchmark" => path && { "path" => path, "blob" => repository.blob(source, path) },
        "listing" => repository.listing(content.tree, except: path, objects: content.extra_objects) }
    end

    # The files in which sides differ; nil where sides differ in something else than their tree.
    # Raises UsageError.
    #: (Array[Side]) -> Array[String]?
    def changed_paths(sides)
      return unless same_but_tree?(*sides) && sides.all? { |side| side.tree? && side.patches.empty? }

      base, *others = sides.map { |side| side.rev ? repository.revision(side.rev) : working_tree }
      others.flat_map do |other|
        repository.changed_paths(base.tree, other.tree, objects: [base, other].map(&:extra_objects))
      end.uniq.sort
    rescue Git::Failed => error
      raise UsageError, "git: #{error.message}"
    end

    # The commits of a range, such as "main..HEAD".
    # Raises UsageError, CannotMeasure.
    #: (String) -> CommitRange
    def range(text) = CommitRange.new(repository, text)

    # The files among changed ones that can change what is measured.
    # @param paths from the repository's top
    # @param code [String, nil] the measured code, where that is no file
    #: (Array[String], ?code: String?) -> Array[String]
    def reaching(paths, code: nil)
      source, inner = placed_script
      words = code || @command&.join(" ") || File.read(source || @script || File::NULL).scrub
      Reach.reaching(paths, script: inner, words: words)
    end

    # A new folder for files of this workspace. It is removed by {#close}.
    #: (String) -> String
    def scratch(name) = @store.scratch(name)

    # Releases the cache's locks. Does not wait.
    #: () -> void
    def close
      @trees.each(&:close)
      @store.close
    end

    private

    # Refuses to compare the working tree with a revision of the same content.
    # @raise [UsageError]
    def refuse_unchanged(sides)
      sides.select(&:dirty).each do |side|
        same = sides.find { |other| other.rev && same_but_tree?(side, other) && unchanged_since?(other.rev) } or next
        raise UsageError, "--dirty: nothing to compare: the working tree has no changes, " \
                          "it is what #{same.rev} is; name another revision (--rev main --dirty), " \
                          "or --control to see the noise of measuring"
      end
    end

    def unchanged_since?(rev) = repository.revision(rev).identity == working_tree.identity

    # Whether sides differ only in the tree that they run in.
    def same_but_tree?(*sides)
      sides.map { |side| side.dup.tap { |copy| copy.rev = copy.dirty = copy.name = nil } }.uniq.one?
    end

    # Makes the sides comparable: when one needs a clone, all get one.
    # Another bundle needs clones too: Bundler writes files beside the Gemfile, and a bundle fits one Ruby only.
    def unify(sides)
      @ruby_scripts = sides.any? { |side| side.ruby && side.ruby.size > 1 && !interpreter(side).flags_fit_rubyopt? }
      @gems_overridden = sides.any? { |side| side.gems.any? }
      new_bundle = @gems_overridden || (@outer.bundled? && sides.any? { |side| side.ruby || side.ruby_source })
      return sides if sides.none?(&:tree?) && !(new_bundle && @bundle && bundled_project?)

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
      requires = [install_gems(side, interpreter, variables), *requires] if side.gems.any? && !tree&.gemfile
      put_ruby_in_path(side, interpreter, variables) if @command
      Pitwall::Bench::Subject.new(
        name: side.name, ruby: interpreter.words, dir: tree ? folder_in(tree) : @dir,
        script: (script_in(tree) unless side.code || @command), code: side.code, command: @command,
        env: (@command ? variables.with_options(requires.map { |path| "-r#{path}" }) : variables).to_h,
        requires: @command ? [] : requires,
        stub: side.stub, root: tree&.path, facts: facts.merge(facts_of(side))
      )
    end

    def bundle_of(tree, side)
      return unless tree.gemfile

      @gems_overridden ? tree.bundle_with(side.gems) : tree.bundle_environment
    end

    # Whether every Ruby loads the bundle. A command loads the bundle itself if needed (`bundle exec`).
    # Loading an unused bundle would add to the measured time.
    def loads_bundle? = !@command || @gems_overridden || @outer.bundled?

    # Installs a side's gems, for code without a Gemfile.
    # @return [String] path of the file that activates the gems
    def install_gems(side, interpreter, variables)
      versions = GemVersions.new(@store, interpreter, dir: @dir, env: @outer.for_builds, on_step: @on_step)
      folders, activation = versions.prepare(side.name || side.gems.keys.first, side.gems)
      variables.with_gem_path(folders + interpreter.gem_path) if folders.any?
      activation
    end

    # Puts the side's Ruby first in PATH, so that `ruby`, `bundle` and scripts with `#!/usr/bin/env ruby` use it.
    def put_ruby_in_path(side, interpreter, variables)
      return unless side.ruby || side.ruby_source || @ruby_scripts

      key = Store.key("stand-in", interpreter.words, @ruby_scripts)
      folder = @store.fetch("sets", key) { |made| interpreter.create_command(made, script: @ruby_scripts) }
      path = (side.env["PATH"] || @outer["PATH"]).to_s.split(":")
      variables.with_programs_of(folder, *(interpreter.bindir unless path.include?(interpreter.bindir)))
      variables.with_options(interpreter.flags) unless @ruby_scripts
    end

    # Files that a message names, that the user's tree has and that git ignores. Paths are relative to the working
    # directory.
    def missing_files(text)
      words = text.scan(%r{[^\s'"`(),;]+}).map { |word| word.chomp(":") }.select { |word| word.match?(/[.\/]/) }
      names = words.flat_map { |word| [word, "#{word}.rb"] }.uniq.reject { |name| name.start_with?("/") }
      candidates = names.flat_map do |name|
        ["", "#{repository.prefix}/"].map { |base| File.expand_path(File.join(repository.top, base, name)) }
      end
      ignored = candidates.uniq.select do |path|
        inner = repository.inside(path)
        inner && File.exist?(path) && repository.ignored?(inner)
      end
      ignored.map { |path| Pathname(path).relative_path_from(Pathname(@dir)).to_s }
    end

    # --- the interpreter

    def interpreter(side)
      key = [side.ruby, side.ruby_source]
      @interpreters[key] ||= begin
        program, *flags = side.ruby || (side.ruby_source ? [built_ruby(*side.ruby_source)] : @ruby)
        Interpreter.new([resolve(program), *flags], dir: @dir, env: @outer.unbundled)
      end
    end

    def resolve(program)
      return File.expand_path(program, @dir) if program.include?("/")

      in_path(program) or raise UsageError, "cannot run #{program}: there is none in PATH; " \
                                            "--ruby takes the path of a Ruby, or its name in PATH"
    end

    def in_path(program)
      candidates = @outer["PATH"].to_s.split(":").map { |folder| File.join(folder, program) }
      candidates.find { |path| File.file?(path) && File.executable?(path) }
    end

    def built_ruby(folder, revision)
      source = RubySource.new(@store, arguments: @configure, outer: @outer, on_step: @on_step)
      program, = source.build(File.expand_path(folder, @dir), revision)
      program
    end

    # A command runs the `ruby` in PATH, so the default is that one.
    def default_ruby = [(in_path("ruby") if @command) || RbConfig.ruby]

    # --- the tree

    def repository = @repository ||= Repository.at(@dir)

    def tree(side, interpreter, facts)
      content = side.rev ? repository.revision(side.rev) : working_tree
      revision = (content.commit || content.tree)[0, 10]
      revision = "no commit yet" if content.changed && content.commit.nil?
      facts["revision"] = content.commit.to_s if content.commit || content.changed
      facts["tree"] = content.tree
      facts["changes"] = "uncommitted" if content.changed
      @contents << content
      facts["title"] = content.title if content.title
      plan = plan("#{side.name || side.rev || "working tree"} (#{revision})", content, side, interpreter)
      tree = Tree.new(@store, plan, on_step: @on_step)
      # Added before the build, so that `close` releases the tree after an interrupt too.
      @trees << tree
      tree.build(script: placed_script)
    end

    # The working tree's content. Read once, so that all sides get the same content even if files are edited meanwhile.
    def working_tree = @working_tree ||= repository.dirty(scratch: -> { @store.scratch("dirty") })

    def plan(name, content, side, interpreter)
      named = side.env["BUNDLE_GEMFILE"] || @outer["BUNDLE_GEMFILE"]
      gemfile = user_gemfile(repository, named)
      Tree::Plan.new(
        side: name, content: content, patches: side.diffs, carried: carried, interpreter: interpreter,
        home: gem_home(interpreter), more_gems: [gemfile && Bundle.user_gems(gemfile, interpreter, @outer)].compact,
        base: @outer.for_builds, prefix: repository.prefix,
        gemfile: named && gemfile && repository.inside(gemfile), bundle: @bundle,
        lock: gemfile && Bundle.lock_of(gemfile).then { |lock| lock if File.file?(lock) },
        settings: gemfile ? Bundle.settings(gemfile) : ""
      )
    end

    # The Gemfile of the user's working directory.
    # @param named [String, nil] path that BUNDLE_GEMFILE names; only used when the file lies inside the repository
    def user_gemfile(repository, named)
      return Bundle.find(@dir, repository.top) unless named

      path = File.expand_path(named, @dir)
      real(path) if File.file?(path) && repository.inside(real(path))
    end

    # The Gemfile that BUNDLE_GEMFILE names outside of the repository. No revision contains it, so all sides use it.
    def outside_gemfile
      named = @outer["BUNDLE_GEMFILE"]
      return if named.to_s.empty? || @outer.bundled?

      path = File.expand_path(named, @dir)
      path if File.file?(path) && !repository.inside(real(path))
    end

    def gem_home(interpreter) = @store.fetch("gems", Store.key(interpreter.abi)) { nil }

    def carried
      @carried ||= CarriedFiles.new(repository.top, @carry.map { |path| [path, @dir] } +
                                                    listed_files.map { |path| [path, repository.top] })
    end

    # The files that .pitwall.yml lists under `carry:`.
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
      [@script_text, relative] if relative
    end

    def script_in(tree)
      relative = @script && tree && repository.inside(@script)
      relative ? File.join(tree.path, relative) : @script
    end

    # The clone's counterpart of the working directory.
    def folder_in(tree)
      folder = File.join(tree.path, repository.prefix).chomp("/")
      FileUtils.mkdir_p(folder)
      folder
    end

    def facts_of(side)
      { "code" => side.code.to_s.strip.gsub(/\s+/, " "),
        "env" => side.env.map { |name, value| "#{name}=#{value}" }.join(" "),
        "gems" => side.gems.map { |pair| pair.join("@") }.join(" "),
        "patches" => side.patches.map { |path| File.basename(path) }.join(" "), "stub" => side.stub.to_s,
        "ruby_source" => side.ruby_source&.join("@").to_s,
        "flags" => side.ruby.to_a.drop(1).join(" ") }.reject { |_, text| text.empty? }
    end

    # A file's path with its folder's links resolved.
    # @raise [UsageError] the file doesn't exist
    def real(path)
      raise Errno::ENOENT unless File.file?(path)

      File.join(File.realpath(File.dirname(path)), File.basename(path))
    rescue SystemCallError
      raise UsageError, "#{path}: no such file"
    end
  end
end

# frozen_string_literal: true

require "digest"
require "fileutils"
require "pitwall/workspace/build_log"
require "pitwall/workspace/bundle"
require "pitwall/workspace/checkout"
require "pitwall/workspace/compiled"
require "pitwall/workspace/extensions"
require "pitwall/workspace/gem_override"
require "pitwall/workspace/inner_path"
require "pitwall/workspace/placed_file"
require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # One side's tree in the cache: checked out and patched, with carried files, bundle and compiled extensions.
    #
    # Pitwall's own files of a tree are in .git/pitwall/, where no tool lists them:
    #   gems       folders of the gems that the tree needs
    #   settings/  Bundler's settings
    #   placed/    state of {PlacedFile}
    # @api private
    class Tree
      FORMAT = 1 # version of a tree's files; trees of another version are not used
      STATE = File.join(".git", "pitwall")
      private_constant :FORMAT, :STATE

      # The parts of a tree.
      #
      # side:        name of the side, for messages: "main (3f2a1bc)"
      # content:     Content
      # patches:     paths of diffs
      # carried:     CarriedFiles
      # interpreter: Interpreter
      # home:        folder of the gems installed for the interpreter
      # more_gems:   further folders of gems
      # base:        environment variables of builds
      # prefix:      path of the user's working directory in the tree
      # gemfile:     path of the Gemfile in the tree, as BUNDLE_GEMFILE names it; nil: the nearest at or above `prefix`
      # bundle:      whether the tree gets a bundle
      # lock:        the working tree's lock file, for revisions that have none; or nil
      # settings:    lines of Bundler's settings
      Plan = Struct.new(:side, :content, :patches, :carried, :interpreter, :home, :more_gems, :base, :prefix,
                        :gemfile, :bundle, :lock, :settings, keyword_init: true)

      # @return [String] the tree's folder
      attr_reader :path

      #: (Store, Plan, on_step: ^(String) -> void) -> void
      def initialize(store, plan, on_step:)
        @store = store
        @plan = plan
        @on_step = on_step
      end

      # Builds the tree unless the cache has it, and places the benchmark file in it.
      # @param script [Array, nil] the benchmark file: its path, and its path in the tree
      # @return [Tree] self
      # Raises UsageError, BuildFailed.
      #: (script: [String, String]?) -> Tree
      def build(script:)
        @path = fetch([])
        @placed = PlacedFile.put(@path, File.join(STATE, "placed"), *script)
        return self if @placed

        # Another process measures another benchmark in that tree, so this benchmark gets a tree of its own.
        @path = fetch(["apart", script ? Digest::SHA256.file(script.first).hexdigest : "none"])
        @placed = PlacedFile.put(@path, File.join(STATE, "placed"), *script)
        @placed ? self : raise(BuildFailed, "#{@plan.side}: other pitwalls use its tree with other benchmarks; " \
                                            "try again when they have ended")
      end

      # Releases the placed file's lock, so that other processes can place another benchmark.
      #: () -> void
      def close = @placed&.close

      # Path of the tree's Gemfile; nil without a bundle.
      #: () -> String?
      def gemfile = @gemfile ||= gemfile_in(@path)

      # Installs the tree's bundle with other versions of some gems.
      # @param gems name → version
      # @return [Hash] environment variables of a process with that bundle
      # Raises BuildFailed.
      #: (Hash[String, String]) -> Hash[String, String?]
      def bundle_with(gems)
        bundle = bundle_of(@path, GemOverride.path(gemfile, gems))
        list = File.join(@path, STATE, File.basename(GemOverride.path(gemfile, gems)))
        @store.exclusively("trees/#{File.basename(@path)}.bundle") do
          unless gems_present?(list)
            GemOverride.write(gemfile, gems)
            File.write(list, prepare(bundle, log(gems)).folders.join("\n"))
          end
        end
        bundle.environment
      end

      # Environment variables of a process with the tree's bundle.
      #: () -> Hash[String, String?]
      def bundle_environment = bundle_of(@path, gemfile).environment

      private

      # The tree's folder in the cache, built if needed.
      # @param more [Array] further parts of the key
      def fetch(more)
        patches = @plan.patches.map { |file| Digest::SHA256.file(file).hexdigest }
        @key = Store.key(FORMAT, "tree", @plan.content.identity, patches, @plan.carried.identity,
                         @plan.interpreter.abi, @plan.interpreter.bundler, @plan.home, @plan.bundle, @plan.gemfile,
                         @plan.prefix, @plan.lock && File.binread(@plan.lock), @plan.settings, more)
        @store.fetch("trees", @key, valid: method(:usable?)) { |folder| make(folder) }
      end

      # Whether a cached tree can be used: its gems may have been uninstalled since.
      # Files that a benchmark has changed are checked out again.
      def usable?(path)
        return false unless File.directory?(File.join(path, STATE)) && gems_present?(File.join(path, STATE, "gems"))

        git = Git.new(path)
        changed = git.call("diff-files", "--name-only", "-z", "--ignore-submodules").split("\0")
        changed -= [PlacedFile.at(path, File.join(STATE, "placed"))]
        if changed.any?
          input = changed.map { |name| "#{name}\0" }.join
          git.call("checkout-index", "--force", "--quiet", "-z", "--stdin", input: input)
        end
        true
      rescue Git::Failed
        false
      end

      # Whether all folders that a file lists exist.
      def gems_present?(list)
        File.file?(list) && File.readlines(list, chomp: true).all? { |folder| File.directory?(folder) }
      end

      def log(*more)
        name = [@key, *more.map { |each| Store.key(each)[0, 6] }].join("-")
        BuildLog.new(side: @plan.side, path: @store.log(name), on_step: @on_step)
      end

      def make(folder)
        log = self.log
        Checkout.new(log).call(@plan.content, folder)
        @plan.patches.each { |file| patch(folder, file, log) }
        @plan.carried.copy_to(folder)
        FileUtils.mkdir_p(File.join(folder, STATE, "settings"))
        unless @plan.settings.empty?
          File.write(File.join(folder, STATE, "settings", "config"), "---\n#{@plan.settings}")
        end

        inventory = install_bundle(folder, log)
        compile(folder, inventory, log)
        File.write(File.join(folder, STATE, "gems"), inventory ? inventory.folders.join("\n") : "")
        # The index now has the finished tree. Later differences are changes by a benchmark.
        record(folder) { |env| log.run("git add", Git.new(folder).command("add", "--update"), dir: folder, env: env) }
      end

      def patch(folder, file, log)
        git = Git.new(folder)
        log.run("git apply #{File.basename(file)}", git.command("apply", "--whitespace=nowarn", file),
                dir: folder, env: Git::ENVIRONMENT)
        files = git.call("apply", "--numstat", "-z", file).split("\0").map { |row| row.split("\t", 3).last }
        list = files.map { |name| "#{name}\0" }.join
        record(folder) { |env| git.call("update-index", "--add", "--remove", "-z", "--stdin", env: env, input: list) }
      end

      # Yields variables with which git writes its objects into an empty folder; then moves the objects into the clone.
      # Otherwise git would update the times of existing objects, also in the user's repository.
      def record(folder)
        objects = File.join(folder, STATE, "objects")
        FileUtils.mkdir_p(objects)
        yield Git::ENVIRONMENT.merge("GIT_OBJECT_DIRECTORY" => objects)
        FileUtils.cp_r(File.join(objects, "."), File.join(folder, ".git", "objects"))
        FileUtils.rm_rf(objects)
      end

      def install_bundle(folder, log)
        gemfile = gemfile_in(folder) or return

        lock = Bundle.lock_of(gemfile)
        FileUtils.cp(@plan.lock, lock) if @plan.lock && !File.exist?(lock)
        prepare(bundle_of(folder, gemfile), log)
      end

      def prepare(bundle, log)
        bundle.prepare(log) do |install|
          @store.exclusively("gems/#{File.basename(@plan.home)}.install") { install.call }
          @store.update_size(@plan.home)
        end
      end

      def compile(folder, inventory, log)
        root = inventory ? File.dirname(gemfile_in(folder)) : gem_root(folder)
        return unless root

        env = inventory ? bundle_of(folder, gemfile_in(folder)).environment : @plan.base
        extensions = Extensions.new(@plan.interpreter, log, env: env)
        found = [*inventory&.extensions, *extensions.named_in(root)].uniq
        return if found.empty?

        submodules = @plan.content.submodules.map { |path, below| [path, below.identity] }
        places = found.map { |gem, *rest| [gem.delete_prefix(folder), rest] }
        identity = [@plan.interpreter.abi, @plan.carried.identity, submodules, places, inventory&.folders]
        Compiled.new(@store, folder, identity: identity).reuse_or_compile { extensions.compile(found) }
      end

      def gemfile_in(root)
        return unless @plan.bundle
        return Bundle.find(start(root), root) unless @plan.gemfile

        path = File.join(root, @plan.gemfile)
        File.file?(path) ? path : raise(BuildFailed, "#{@plan.side}: BUNDLE_GEMFILE: it has no #{@plan.gemfile}")
      end

      def bundle_of(root, gemfile)
        Bundle.new(gemfile: gemfile, interpreter: @plan.interpreter, home: @plan.home,
                   config: File.join(root, STATE, "settings"), cache: File.join(@store.root, "bundler"),
                   more_gems: @plan.more_gems, base: @plan.base)
      end

      # The nearest folder with a gemspec, at or above the start folder; nil where there is none.
      def gem_root(root)
        dir = start(root)
        dir = File.dirname(dir) until Dir.children(dir).any? { |name| name.end_with?(".gemspec") } || dir == root
        dir
      end

      # The folder in which the benchmark starts. A revision may not have the user's working directory; then the nearest
      # folder above it.
      def start(root)
        dir = File.join(root, @plan.prefix).chomp("/")
        dir = File.dirname(dir) until File.directory?(dir)
        dir
      end
    end
  end
end

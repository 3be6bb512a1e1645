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
    # One side's tree: checked out, patched, with its carried files, its bundle and its compiled extensions, in the cache.
    #
    # What Pitwall itself notes of a tree is in .git/pitwall/, where nothing lists it: `gems` (folders of gems it needs),
    # `settings/` (Bundler's), what {PlacedFile} keeps.
    # @api private
    class Tree
      FORMAT = 1 # of what is in the cache; trees of another one are left to be removed
      NOTES = File.join(".git", "pitwall")
      private_constant :FORMAT, :NOTES

      # What a tree is made of, beside its content.
      #
      # side:         for messages: "main (3f2a1bc)"
      # patches:      paths of diffs · carried: CarriedFiles
      # interpreter:  Interpreter · home: folder of gems installed for it · more_gems: further ones
      # base:         Hash of variables
      # gemfile:      the Gemfile's path in the tree where one is wished for, else nil: the one at or above `prefix`
      # bundle:       false: no bundle is made
      # lock:         the lock file of the user's working tree, for revisions that have none, or nil
      # settings:     lines of Bundler's settings
      Plan = Struct.new(:side, :content, :patches, :carried, :interpreter, :home, :more_gems, :base, :prefix, :gemfile, :bundle, :lock, :settings,
                        keyword_init: true)

      # @return [String]
      attr_reader :path

      #: (Store, Plan, on_step: ^(String) -> void) -> void
      def initialize(store, plan, on_step:)
        @store = store
        @plan = plan
        @on_step = on_step
      end

      # Builds it where it isn't there, and puts the benchmark into it.
      # @param script [Array, nil] the benchmark: its path, and its path in the tree
      # @return [Tree] self
      # Raises UsageError, BuildFailed.
      #: (script: [String, String]?) -> Tree
      def build(script:)
        @path = fetch([])
        @placed = PlacedFile.put(@path, File.join(NOTES, "placed"), *script)
        return self if @placed

        # Another pitwall measures with another benchmark in that tree: this one gets its own.
        @path = fetch(["apart", script ? Digest::SHA256.file(script.first).hexdigest : "none"])
        @placed = PlacedFile.put(@path, File.join(NOTES, "placed"), *script)
        @placed ? self : raise(BuildFailed, "#{@plan.side}: other pitwalls use its tree with other benchmarks; try again when they have ended")
      end

      # Lets others change it.
      #: () -> void
      def close = @placed&.close

      # The Gemfile it runs with, or nil.
      #: () -> String?
      def gemfile = @gemfile ||= gemfile_in(@path)

      # Its bundle, with other versions of some gems.
      # @return [Hash] variables
      # Raises BuildFailed.
      #: (Hash[String, String]) -> Hash[String, String?]
      def bundle_with(gems)
        bundle = bundle_of(@path, GemOverride.path(gemfile, gems))
        notes = File.join(@path, NOTES, File.basename(GemOverride.path(gemfile, gems)))
        @store.exclusively("trees/#{File.basename(@path)}.bundle") do
          unless gems_there?(notes)
            GemOverride.write(gemfile, gems)
            File.write(notes, prepare(bundle, log(gems)).folders.join("\n"))
          end
        end
        bundle.environment
      end

      # Variables with which a process loads its bundle.
      #: () -> Hash[String, String?]
      def bundle_environment = bundle_of(@path, gemfile).environment

      private

      def fetch(more)
        patches = @plan.patches.map { |file| Digest::SHA256.file(file).hexdigest }
        @key = Store.key(FORMAT, "tree", @plan.content.identity, patches, @plan.carried.identity,
                         @plan.interpreter.abi, @plan.interpreter.bundler, @plan.home, @plan.bundle, @plan.gemfile, @plan.prefix,
                         @plan.lock && File.binread(@plan.lock), @plan.settings, more)
        @store.fetch("trees", @key, valid: method(:whole?)) { |folder| make(folder) }
      end

      # Gems can be uninstalled, and a benchmark may change files of its tree.
      def whole?(path)
        return false unless File.directory?(File.join(path, NOTES)) && gems_there?(File.join(path, NOTES, "gems"))

        git = Git.new(path)
        changed = git.call("diff-files", "--name-only", "-z", "--ignore-submodules").split("\0") - [PlacedFile.at(path, File.join(NOTES, "placed"))]
        git.call("checkout-index", "--force", "--quiet", "-z", "--stdin", input: changed.map { |name| "#{name}\0" }.join) if changed.any?
        true
      rescue Git::Failed
        false
      end

      def gems_there?(list) = File.file?(list) && File.readlines(list, chomp: true).all? { |folder| File.directory?(folder) }

      def log(*more)
        name = [@key, *more.map { |each| Store.key(each)[0, 6] }].join("-")
        BuildLog.new(side: @plan.side, path: @store.log(name), on_step: @on_step)
      end

      def make(folder)
        log = self.log
        Checkout.new(log).call(@plan.content, folder)
        @plan.patches.each { |file| patch(folder, file, log) }
        @plan.carried.into(folder)
        FileUtils.mkdir_p(File.join(folder, NOTES, "settings"))
        File.write(File.join(folder, NOTES, "settings", "config"), "---\n#{@plan.settings}") unless @plan.settings.empty?
        inventory = install_bundle(folder, log)
        compile(folder, inventory, log)
        File.write(File.join(folder, NOTES, "gems"), inventory ? inventory.folders.join("\n") : "")
        # From here on what differs from the index was changed by a benchmark.
        record(folder) { |env| log.run("git add", Git.new(folder).command("add", "--update"), dir: folder, env: env) }
      end

      def patch(folder, file, log)
        git = Git.new(folder)
        log.run("git apply #{File.basename(file)}", git.command("apply", "--whitespace=nowarn", file), dir: folder, env: Git::ENVIRONMENT)
        files = git.call("apply", "--numstat", "-z", file).split("\0").map { |row| row.split("\t", 3).last }
        list = files.map { |name| "#{name}\0" }.join
        record(folder) { |env| git.call("update-index", "--add", "--remove", "-z", "--stdin", env: env, input: list) }
      end

      # git renews the times of objects that are there already when it is to write them, also in a repository it only borrows from.
      # So it writes where it sees none.
      def record(folder)
        objects = File.join(folder, NOTES, "objects")
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
          @store.weigh(@plan.home)
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
        Compiled.new(@store, folder, identity: identity).once { extensions.compile(found) }
      end

      def gemfile_in(root)
        return unless @plan.bundle
        return Bundle.find(start(root), root) unless @plan.gemfile

        path = File.join(root, @plan.gemfile)
        File.file?(path) ? path : raise(BuildFailed, "#{@plan.side}: BUNDLE_GEMFILE: it has no #{@plan.gemfile}")
      end

      def bundle_of(root, gemfile)
        Bundle.new(gemfile: gemfile, interpreter: @plan.interpreter, home: @plan.home, config: File.join(root, NOTES, "settings"),
                   cache: File.join(@store.root, "bundler"), more_gems: @plan.more_gems, base: @plan.base)
      end

      # The nearest folder with a gemspec.
      def gem_root(root)
        dir = start(root)
        dir = File.dirname(dir) until Dir.children(dir).any? { |name| name.end_with?(".gemspec") } || dir == root
        dir
      end

      # The folder the benchmark starts in; a revision may not have it yet.
      def start(root)
        dir = File.join(root, @plan.prefix).chomp("/")
        dir = File.dirname(dir) until File.directory?(dir)
        dir
      end
    end
  end
end

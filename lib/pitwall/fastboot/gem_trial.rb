# frozen_string_literal: true

require_relative "bundled_gems"
require_relative "effects"
require_relative "lazy_list"

module Pitwall
  module Fastboot
    # Finds the gems that can wait until they are used, while Bundler.require loads them, for `pitwall boot cache lazy`.
    # `entries` has one entry for each gem that was loaded. Those with changes must not wait.
    # @api private
    class GemTrial
      EACH = Array.instance_method(:each)
      private_constant :EACH

      attr_reader :entries

      # @param folder [String] a folder for the trial's own files
      #: (String) -> void
      def initialize(folder)
        @folder = folder
        @entries = []
        @tried = {}.compare_by_identity # dependencies
      end

      # Called for files that are loaded. It begins once Bundler knows its gems.
      #: () -> void
      def keep
        return if @definition

        @definition = BundledGems.definition or return
        @definition.dependencies.each do |dependency|
          BundledGems.answer(dependency) { |required| watched(dependency, required) }
        end
      end

      # The path for the list of this bundle. nil: Bundler has read no Gemfile
      #: (String) -> String?
      def list_path(folder) = (LazyList.path(folder, @definition) if @definition)

      private

      # Bundler calls `each` for the files to load. It asks again after a LoadError, and has the plain answer then. What
      # it loads instead is not tried.
      def watched(dependency, required)
        return required if required == [] || @tried[dependency]

        @tried[dependency] = true
        trial = self
        files = [*(required || dependency.name)]
        files.define_singleton_method(:each) do |&block|
          trial.send(:try, dependency, required) { EACH.bind_call(self, &block) }
        end
        files
      end

      def try(dependency, required)
        @effects ||= Effects.new(@folder)
        result = features = nanoseconds = nil
        constants, changes = @effects.of do
          number = $LOADED_FEATURES.size
          start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          result = yield
          nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start
          features = $LOADED_FEATURES.drop(number)
        end
        note(dependency, required, nanoseconds, features, constants, changes)
        result
      end

      def note(dependency, required, nanoseconds, features, constants, changes)
        folder = Gem.loaded_specs[dependency.name]&.full_gem_path.to_s
        entry = LazyList::Entry.new(name: dependency.name, file: features.last.to_s, required: required&.join(","),
                                    ns: nanoseconds, constants: constants, changes: changes, files: [])
        entry.changes.concat(doubts(entry, dependency, features, folder))
        entry.files = needed(features, constants, folder) if entry.changes.empty?
        @entries << entry
      end

      # Why the gem can't wait, apart from what it changes.
      def doubts(entry, dependency, features, folder)
        own_source = dependency.source && dependency.source.class.name == "Bundler::Source::Path"
        [("is in a folder of the application (path:), so it may change" if own_source),
         ("is loaded by several files" if entry.required.to_s.include?(",")),
         ("takes less than 1 ms" if entry.ns < LazyList::LEAST_NS),
         ("was loaded before" if entry.file.empty?),
         ("defines no constant" if entry.constants.empty?),
         ("ends with a file of another gem" if !entry.file.empty? && !inside?(entry.file, folder)),
         ("has a path with a tab or a line break" if entry.file.match?(/[\t\n]/)),
         ("has an END block" if features.any? { |path| block_at_end?(path) })].compact
      end

      # An END block is an at_exit handler, and no method is called for it.
      def block_at_end?(path) = path.end_with?(".rb") && File.file?(path) && File.binread(path).match?(/\bEND\s*\{/n)

      def inside?(path, folder) = !folder.empty? && path.start_with?("#{folder}/") && path.end_with?(".rb")

      # Files of the libraries that define the gem's constants. Suppose that the program loads such a file while the gem
      # waits. The file would use the autoload of its own constant. Then Ruby would load the gem while the gem's own
      # file is half loaded.
      def needed(features, constants, folder)
        sources = constants.map { |holder, name| Effects.source(holder, name) }
        libraries = sources.compact.map { |path| library(path) } << folder
        libraries = nil if sources.any?(&:nil?) # C defined it: any file may be needed
        wanted = features.select { |path| libraries.nil? || libraries.include?(library(path)) }
        wanted.reject { |path| path.match?(/[\t\n]/) }.map { |path| [path, name_of(path)] }
      end

      # The folder of a gem; of Ruby's own libraries the first part of the name.
      def library(path)
        spec = Gem.loaded_specs.each_value.find { |it| path.start_with?("#{it.full_gem_path}/") }
        spec ? spec.full_gem_path : name_of(path).to_s[%r{\A[^/.]+}]
      end

      # By which `require` finds it in $LOAD_PATH.
      def name_of(path)
        roots = $LOAD_PATH.map(&:to_s).select { |root| path.start_with?("#{root}/") }
        root = roots.max_by(&:size)
        path.delete_prefix("#{root}/") if root
      end
    end
  end

  # Only in the process that `pitwall boot cache lazy` has started itself, not in children of that process.
  if ENV["PITWALL_BOOT_TRIAL_PARENT"] == Process.ppid.to_s
    pid = Process.pid
    folder = ENV.fetch("PITWALL_BOOT_TRIAL")
    trial = Fastboot::GemTrial.new(folder)
    Fastboot.lazy_gems = trial
    at_exit do
      path = trial.list_path(ENV.fetch("PITWALL_BOOT_CACHE"))
      if pid == Process.pid && path
        list = Fastboot::LazyList::List.new(trial.entries, 0)
        File.binwrite(File.join(folder, "gems"), "#{path}\n#{Fastboot::LazyList.text(list)}")
      end
    end
  end
end

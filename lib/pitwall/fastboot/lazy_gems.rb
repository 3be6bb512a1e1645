# frozen_string_literal: true

require_relative "bundled_gems"
require_relative "lazy_list"

module Pitwall
  module Fastboot
    # Gems that Bundler.require does not load, because `pitwall boot cache lazy` has found no difference without them.
    # The constants of such a gem are autoloads. A `require` of a file of such a gem loads the whole gem first.
    # @api private
    class LazyGems
      AUTOLOAD = Module.instance_method(:autoload)
      IS_AUTOLOAD = Module.instance_method(:autoload?)
      DEFINED = Module.instance_method(:const_defined?)
      GET = Module.instance_method(:const_get)
      private_constant :AUTOLOAD, :IS_AUTOLOAD, :DEFINED, :GET

      #: (String, Counts) -> void
      def initialize(folder, counts)
        @folder = folder
        @counts = counts
        @names = {} # what programs require => LazyList::Entry
        @loaders = {}.compare_by_identity # a gem that is being loaded, or was => the thread
        @waiting = []
      end

      # Called when the program loads a file. The list is read once, when Bundler has read the Gemfile.
      #: () -> void
      def keep
        return if @definition

        @definition = BundledGems.definition or return
        entries = LazyList.read(LazyList.path(@folder, @definition)) or return
        hold(entries.to_h { |entry| [entry.name, entry] })
        Native.wake_by(self, @names)
      rescue *Exceptions::OWN => error
        @counts.because("no lazy gems", error.class, error.message)
      end

      # The program is going to load a file of the gem.
      # @param name what the program requires. An autoload of the gem gives the string `entry.file` itself.
      #: (untyped, String) -> void
      def wake(entry, name)
        return if @loaders[entry].equal?(Thread.current)

        unless @loaders[entry]
          @loaders[entry] = Thread.current
          @waiting -= [entry]
          @counts.add(:lazy_woken)
        end
        load(entry) unless name.equal?(entry.file)
      end

      # Loads those that still wait.
      #: () -> void
      def load_all = @waiting.each { |entry| load(entry) }

      # Names of the gems that were used, and loaded then.
      #: () -> Array[String]
      def woken = @loaders.keys.map(&:name)

      private

      # Loads the gem by the autoload of a constant, and not by `require`. While an autoload runs, the files that it
      # loads may define the gem's other constants. In a plain `require` of the gem, Ruby raises NameError there. If
      # another thread is loading the gem, the autoload waits for that thread.
      def load(entry)
        holder, name = entry.constants.first
        mod = named_module(holder)
        GET.bind_call(mod, name, false) if mod && IS_AUTOLOAD.bind_call(mod, name, false) # not loaded meanwhile
      end

      def hold(entries)
        @definition.dependencies.each do |dependency|
          entry = entries[dependency.name]
          entry = nil if entry && entry.required != dependency.autorequire&.join(",")
          BundledGems.answer(dependency) do |before|
            next [] if entry && wait?(entry)

            wake_before(before || dependency.name)
            before
          end
        end
      end

      # Bundler is going to require these files. Its Kernel.require does not always reach ext/fastboot/require.c.
      def wake_before(names)
        names = [*names].flat_map { |name| [name, name.tr("-", "/")] if name.is_a?(String) }
        names.each { |name| (entry = @names[name]) && wake(entry, name) }
      end

      # Bundler is going to load the gem.
      # @return whether the gem waits
      def wait?(entry)
        return true if @waiting.include?(entry)
        return false if @loaders[entry] || !register(entry)

        @waiting += [entry]
        entry.names.each { |name| @names[name] ||= entry }
        @counts.add(:lazy_gems)
        true
      rescue *Exceptions::OWN => error
        @counts.because("#{entry.name} does not wait", error.class, error.message)
        false
      end

      # @return whether all its constants are autoloads now
      def register(entry)
        places = entry.constants.map { |holder, name| [named_module(holder), name] }
        return false if places.empty? || !File.file?(entry.file)
        return false if places.any? { |mod, name| mod.nil? || DEFINED.bind_call(mod, name, false) }

        places.each { |mod, name| AUTOLOAD.bind_call(mod, name, entry.file) }
        true
      end

      # @return the module of that name, nil: it is not loaded
      def named_module(name)
        name.split("::").reduce(Object) do |mod, part|
          return nil if IS_AUTOLOAD.bind_call(mod, part, false) || !DEFINED.bind_call(mod, part, false)

          found = GET.bind_call(mod, part, false)
          return nil unless Module === found # not is_a?: it may be a BasicObject

          found
        end
      end
    end
  end
end

# frozen_string_literal: true

require_relative "bundled_gems"
require_relative "lazy_list"
require_relative "of_modules"

module Pitwall
  module Fastboot
    # Gems that Bundler.require does not load, because `pitwall boot cache lazy` has found no difference without them.
    # The constants of such a gem are autoloads. A `require` of a file of such a gem loads the whole gem first.
    # @api private
    class LazyGems
      include OfModules

      # A boot may go without a collection if its memory is at most this many times the peak without the accelerator.
      TIMES_PLAIN = 1.35
      # A boot may need a little more memory than the last one.
      TIMES_LAST = 1.15
      private_constant :TIMES_PLAIN, :TIMES_LAST

      # @param uncollected [Integer] an estimate, in MiB: the memory of the last boot if no garbage had been collected;
      #   0: unknown
      #: (String, Counts, ?Integer) -> void
      def initialize(folder, counts, uncollected = 0)
        @folder = folder
        @counts = counts
        @uncollected = uncollected
        @names = {} # what programs require => LazyList::Entry
        @used = {}.compare_by_identity # LazyList::Entry => true
        @constants = {}.compare_by_identity # module => { name of a constant => LazyList::Entry }
        @held = [] # all gems that Bundler did not load
        @memory = 0 # MiB, see LazyList::List
      end

      # Called when the program loads a file. The list is read once, when Bundler has read the Gemfile.
      #: () -> void
      def keep
        return if @definition

        @definition = BundledGems.definition or return
        list = LazyList.read(LazyList.path(@folder, @definition)) or return
        @memory = list.memory
        hold(list.entries.to_h { |entry| [entry.name, entry] })
        Native.wake_by(self, @names)
      rescue *Exceptions::OWN => error
        @counts.because("no lazy gems", error.class, error.message)
      end

      # The program is going to load a file of the gem.
      # @param name what the program requires. An autoload of the gem gives the string `entry.file` itself.
      #: (untyped, String) -> void
      def wake(entry, name)
        @counts.add(:lazy_woken) unless @used.key?(entry)
        @used[entry] = true
        load(entry) unless name.equal?(entry.file)
      end

      # Loads those that still wait.
      #: () -> void
      def load_all = @held.each { |entry| load(entry) }

      # Is the constant an autoload of a gem that waits? Then the program may not give it another autoload: without the
      # accelerator the constant would be there, and Ruby would do nothing.
      #: (Module, (Symbol | String)) -> bool
      def waits?(mod, name)
        entry = @constants[mod]&.[](name.to_sym)
        entry ? autoload?(entry, mod, name) : false
      end

      # Names of the gems that were used, and loaded then.
      #: () -> Array[String]
      def woken = @used.keys.map(&:name)

      private

      # A gem that waits takes no memory, so a boot may use more before it collects. The limit is raised only if the
      # last boot shows that then no collection is needed.
      def spare_collections
        most = @memory * TIMES_PLAIN
        return unless @uncollected.between?(1, most) && Native.respond_to?(:let_memory_grow)

        Native.let_memory_grow([most, @uncollected * TIMES_LAST].min.to_i)
      end

      # Loads the gem by the autoload of a constant, and not by `require`. While an autoload runs, the files that it
      # loads may define the gem's other constants. In a plain `require` of the gem, Ruby raises NameError there.
      # `autoload?` returns nil in two cases: the gem is loaded, or this thread is loading the gem. If another thread is
      # loading the gem, `const_get` waits for that thread. If loading the gem fails, the constant is an autoload again.
      def load(entry)
        entry.constants.each do |holder, name|
          mod = named_module(holder) or next
          return ask(mod, :const_get, name, false) if autoload?(entry, mod, name)
        end
      end

      # Is the constant an autoload of the gem? Another library may have removed it.
      def autoload?(entry, mod, name) = entry.file.equal?(ask(mod, :autoload?, name, false))

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
        return true if @held.include?(entry)
        return false unless register(entry)

        spare_collections if @held.empty?
        @held += [entry]
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
        return false if places.any? { |mod, name| mod.nil? || ask(mod, :const_defined?, name, false) }

        places.each do |mod, name|
          ask(mod, :autoload, name, entry.file)
          (@constants[mod] ||= {})[name.to_sym] = entry
        end
        true
      end

      # @return the module of that name, nil: it is not loaded
      def named_module(name)
        name.split("::").reduce(Object) do |mod, part|
          return nil if ask(mod, :autoload?, part, false) || !ask(mod, :const_defined?, part, false)

          found = ask(mod, :const_get, part, false)
          return nil unless Module === found # not is_a?: it may be a BasicObject

          found
        end
      end
    end
  end
end

# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Finds the file of a `require` without probing each folder of $LOAD_PATH: it knows which names each folder has at
    # its top. Nothing of it is stored. Whenever it is in doubt, Ruby searches itself. The search is in
    # ext/fastboot/require.c and load_index.c. This class keeps Kernel#require in place, and knows RubyGems.
    #
    # Folders of installed gems and of Ruby itself are listed once, and looked at again only before a LoadError. All
    # others are looked at again at each search that passes them, because files may appear in them.
    # @api private
    class LoadIndex
      RUBYGEMS = %r{rubygems/core_ext/kernel_require\.rb>?\z}
      WARNS = %r{/bundled_gems\.rb>?\z}
      # The newest Ruby whose sources were checked for extensions that are no files (ext/fastboot/require.c)
      # and for the Hash of real paths (real_paths.c).
      KNOWN_UNTIL = 4.1
      private_constant :RUBYGEMS, :WARNS, :KNOWN_UNTIL

      #: (Counts) -> void
      def initialize(counts)
        @counts = counts
        @folders = Native::LoadIndex.new
        known = RUBY_VERSION.to_f <= KNOWN_UNTIL
        only_files = known && RbConfig::CONFIG["EXTSTATIC"].to_s.empty? # otherwise more extensions may be no files
        Native.search_with(@folders, $LOAD_PATH, only_files, counts)
        Native.know_real_paths(__FILE__, File.realpath(__FILE__)) if known && Ractor.count == 1
      end

      # Replaces Kernel#require.
      # @return [String, nil] why not: somebody else has replaced `require`
      #: () -> String?
      def install
        now = Kernel.instance_method(:require)
        return if now == @own

        plain = plain_require(now)
        return "require was replaced before (#{now.source_location.first})" if plain.nil?

        gems = plain == :gem_original_require
        @rubygems = (now.source_location.first.match?(WARNS) ? :warns : :activates) if gems
        @ruby ||= gems ? Kernel.instance_method(plain) : now
        come_before(now, plain)
        nil
      end

      # Bundler puts Ruby's own method back, or a method that warns of gems which Ruby no longer has. Then that method
      # is replaced again.
      #: () -> void
      def keep
        now = Kernel.instance_method(:require)
        return if now == @own

        warns = now.source_location&.first&.match?(WARNS)
        return unless warns || now == @ruby

        @rubygems = (:warns if warns)
        come_before(now, warns ? :gem_original_require : :pitwall_require_before)
      rescue NameError, FrozenError # there is no `require` just now, or Kernel is frozen
        nil
      end

      private

      # The method that RubyGems' own `require` calls in the end.
      # @param now the `require` of now
      # @return [Symbol, nil] nil: an unknown library has replaced `require`
      def plain_require(now)
        file = now.source_location&.first
        return :pitwall_require_before if file.nil?
        return unless file.match?(RUBYGEMS) || file.match?(WARNS)

        :gem_original_require if Kernel.private_method_defined?(:gem_original_require)
      end

      # @param before the method to replace. It is a method, not a name. Another thread may have stored our own method
      #   under the name. Our method would then call itself.
      def come_before(before, plain)
        keep_before(before)
        warned = @rubygems == :activates || (bundle_warned_names if @rubygems)
        Native.replace_require(self, plain, warned)
        @own ||= Kernel.instance_method(:require)
      end

      def keep_before(before)
        verbose, $VERBOSE = $VERBOSE, nil # Ruby would warn of a second definition
        Kernel.module_eval do
          define_method(:pitwall_require_before, before)
          private :pitwall_require_before
        end
      ensure
        $VERBOSE = verbose
      end

      # Would RubyGems activate a gem for it, or warn? Called for each name as long as RubyGems may activate one.
      def rubygems_decides?(name)
        Thread.handle_interrupt(Exceptions::LATER) do
          activates?(name) || warned_names&.key?(name[%r{\A[^/.]+}])
        rescue StandardError
          true
        end
      end

      # The first parts of all names of which RubyGems may warn.
      def warned_names
        return unless defined?(Gem::BUNDLED_GEMS::SINCE)

        @warned_names ||= first_parts(Gem::BUNDLED_GEMS) { true }
      end

      # warned_names without the gems that Bundler has activated, of which RubyGems does not warn. A gem that was
      # activated before Bundler may be missing in the lockfile. RubyGems warns of such a gem.
      def bundle_warned_names
        return unless defined?(Gem::BUNDLED_GEMS::SINCE)

        locked = ::Bundler.locked_gems&.specs.to_a.map(&:name)
        first_parts(Gem::BUNDLED_GEMS) { |gem| !(locked.include?(gem) && Gem.loaded_specs.key?(gem)) }
      rescue StandardError # of Bundler
        warned_names
      end

      def activates?(name)
        return false unless defined?(Gem) && Gem.respond_to?(:find_unresolved_default_spec)

        Gem.find_unresolved_default_spec(name) || !Gem::Specification.unresolved_deps.empty?
      end

      # The first parts of the names of some gems' files. The block says for a gem's name whether to take the gem.
      def first_parts(gems)
        names = gems::SINCE.keys.to_h { |name| [name, name] }
        names.update(gems::EXACT) if gems.const_defined?(:EXACT)
        names.filter_map { |name, gem| [name[%r{\A[^/.-]+}], true] if yield(gem) }.to_h
      end

      # Called if $LOAD_PATH or one of its folders has changed, and after a failure that may pass. A relative entry and
      # a lack of permission are not expected to pass.
      def take_load_path
        taken = @folders.take($LOAD_PATH, fixed_roots)
        return if taken == true

        @counts.add(:relative_load_path) if taken == false
        @counts.because("no index of $LOAD_PATH", taken) if taken
      rescue StandardError # of Gem.path, for instance
        nil
      end

      # Below these, files don't appear.
      def fixed_roots
        roots = RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir")
        if defined?(Gem) && Gem.respond_to?(:path)
          # With a BUNDLE_PATH, Gem.path lacks the default folder. Bundler itself may be a gem there.
          homes = [*Gem.path, Gem.default_dir].uniq
          roots += homes.flat_map { |home| %w[gems extensions bundler].map { |name| "#{home}/#{name}" } }
        end
        roots
      end
    end
  end
end

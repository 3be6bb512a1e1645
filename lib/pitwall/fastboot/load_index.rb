# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Finds the file of a `require` without probing each folder of $LOAD_PATH: it knows which names each folder has at
    # its top. Nothing of it is stored. Whenever it is in doubt, Ruby searches itself.
    #
    # Folders of installed gems and of Ruby itself are listed once in a process. All others are looked at again at each
    # search, because files may appear in them.
    # @api private
    class LoadIndex
      NAME = %r{\A(?:[\w+-][\w+.-]*/)*[\w+-][\w+.-]*\z}
      RUBYGEMS = %r{rubygems/core_ext/kernel_require\.rb>?\z}
      WARNS = %r{/bundled_gems\.rb>?\z}
      COMPILED = /\.(?:o|dll|dylib|bundle)\z/ # names of which Ruby tries others, too
      # Extensions that are no files (ruby_init_ext in Ruby's source), and up to which Ruby this is known.
      STATIC = %w[prism/prism].freeze
      KNOWN_UNTIL = 4.1
      # Exceptions of Thread#raise wait: a rescue here would swallow them.
      LATER = { StandardError => :never }.freeze
      private_constant :NAME, :RUBYGEMS, :WARNS, :COMPILED, :STATIC, :KNOWN_UNTIL, :LATER

      #: (Counts) -> void
      def initialize(counts)
        @counts = counts
        @folders = Native::LoadIndex.new
        # Otherwise more extensions may be no files.
        @extensions = RbConfig::CONFIG["EXTSTATIC"].to_s.empty? && RUBY_VERSION.to_f <= KNOWN_UNTIL
      end

      # Stands before Kernel#require.
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

      # Bundler puts Ruby's own method back, or one that warns of gems which Ruby no longer has. This one then comes
      # before it again.
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

      # @return the path that Ruby would find; false: there is no such file; nil: Ruby is to search
      #: (String) -> (String | false | nil)
      def find(name)
        Thread.handle_interrupt(LATER) do
          next @counts.add(:rubygems_decides) if @rubygems && rubygems_decides?(name)

          path = search(name) if usual?(name)
          path = nil if path == false && @rubygems == :activates
          @counts.add(path.nil? ? :not_found : :found)
          path
        rescue StandardError
          @counts.add(:not_found)
        end
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

      # @param before the method to stand before. It is given as a method, not by its name: another thread may have put
      #   this one there meanwhile, which would then call itself.
      def come_before(before, plain)
        Kernel.module_eval do
          define_method(:pitwall_require_before, before)
          private :pitwall_require_before
        end
        find_quickly
        Native.replace_require(self, plain)
        @own ||= Kernel.instance_method(:require)
      end

      # Unless RubyGems is asked about each name, the extension does what `find` does.
      def find_quickly
        folders = @folders unless @rubygems == :activates
        Native.find_quickly(folders, $LOAD_PATH, (warned_names if @rubygems), @extensions, @counts)
      end

      # Would RubyGems activate a gem for it, or warn?
      def rubygems_decides?(name)
        return true if @rubygems == :activates && activates?(name)
        warned_names&.key?(name[%r{\A[^/.]+}])
      end

      # The first parts of all names of which RubyGems may warn.
      def warned_names
        return unless defined?(Gem::BUNDLED_GEMS::SINCE)

        @warned_names ||= first_parts(Gem::BUNDLED_GEMS)
      end

      def activates?(name)
        return false unless defined?(Gem) && Gem.respond_to?(:find_unresolved_default_spec)

        Gem.find_unresolved_default_spec(name) || !Gem::Specification.unresolved_deps.empty?
      end

      def first_parts(gems)
        names = gems::SINCE.keys
        names += gems::EXACT.keys if gems.const_defined?(:EXACT)
        names.to_h { |name| [name[%r{\A[^/.-]+}], true] }
      end

      def usual?(name)
        name.ascii_only? && name.match?(NAME) && !name.match?(COMPILED) && !STATIC.include?(name)
      end

      def search(name)
        return unless @folders.taken?($LOAD_PATH) || take_load_path

        @folders.search(name, @extensions)
      end

      # The same $LOAD_PATH is taken once, also if it can't be used.
      def take_load_path
        taken = @folders.take($LOAD_PATH, fixed_roots)
        return true if taken == true

        @counts.add(:relative_load_path) if taken == false
        @counts.because("no index of $LOAD_PATH", taken) if taken
        false
      rescue StandardError # Gem.path, for instance. It is called from C, too.
        false
      end

      # Below these, files don't appear.
      def fixed_roots
        roots = RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir")
        if defined?(Gem) && Gem.respond_to?(:path)
          roots += Gem.path.flat_map { |home| %w[gems extensions bundler].map { |name| "#{home}/#{name}" } }
        end
        roots
      end
    end
  end
end

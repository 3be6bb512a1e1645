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
      # A folder of $LOAD_PATH. `state` is its times when it was listed; nil: there was none.
      Folder = Struct.new(:path, :fixed, :state, :names)
      NAME = %r{\A(?:[\w+-][\w+.-]*/)*[\w+-][\w+.-]*\z}
      COMPILED = /\.(?:so|o|dll|dylib|bundle)\z/
      private_constant :Folder, :NAME, :COMPILED

      #: (Counts) -> void
      def initialize(counts)
        @counts = counts
        @folders = {} # by entry of $LOAD_PATH
        @extensions = RbConfig::CONFIG["EXTSTATIC"].to_s.empty? # else Ruby has extensions that are no files
      end

      # Stands before Kernel#require.
      # @return [String, nil] why not: somebody else has replaced `require`
      #: () -> String?
      def install
        plain = plain_require
        return "require was replaced before (#{Kernel.instance_method(:require).source_location.first})" if plain.nil?

        @rubygems = plain == :gem_original_require
        @ruby ||= Kernel.instance_method(plain == :gem_original_require ? plain : :require)
        Kernel.module_eval { alias_method :pitwall_require_before, :require }
        Kernel.send(:private, :pitwall_require_before)
        Native.replace_require(self, plain)
        @own = Kernel.instance_method(:require)
        nil
      end

      # Bundler puts Ruby's own method back. Then this one has to come before it again.
      #: () -> void
      def keep
        now = Kernel.instance_method(:require)
        install if now != @own && now == @ruby
      end

      # @return the path that Ruby would find; nil: Ruby is to search
      #: (String) -> String?
      def find(name)
        return @counts.add(:rubygems_decides) if @rubygems && rubygems_decides?(name)

        path = search(name) if name.ascii_only? && name.match?(NAME) && !name.match?(COMPILED)
        return @counts.add(:not_found) if path.nil?

        @counts.add(:found)
        path
      rescue SystemCallError
        @counts.add(:not_found)
      end

      private

      # The method that RubyGems' own `require` calls in the end.
      # @return [Symbol, nil] nil: an unknown library has replaced `require`
      def plain_require
        file = Kernel.instance_method(:require).source_location&.first
        return :pitwall_require_before if file.nil?
        return unless file.match?(%r{rubygems/core_ext/kernel_require\.rb>?\z|/bundled_gems\.rb>?\z})

        :gem_original_require if Kernel.private_method_defined?(:gem_original_require)
      end

      # Would RubyGems activate a gem for it, or warn?
      def rubygems_decides?(name)
        return false unless defined?(Gem) && Gem.respond_to?(:find_unresolved_default_spec)
        return true if Gem.find_unresolved_default_spec(name) || !Gem::Specification.unresolved_deps.empty?
        return false unless defined?(Gem::BUNDLED_GEMS::SINCE)

        since = Gem::BUNDLED_GEMS::SINCE
        since.key?(name[%r{\A[^/]+}].delete_suffix(".rb")) || since.key?(name.delete_suffix(".rb").tr("/", "-"))
      end

      def search(name)
        return unless current?

        first = name[%r{\A[^/]+}]
        alone = first == name
        return in_folders(name, first) if name.end_with?(".rb")

        source = in_folders("#{name}.rb", alone ? "#{name}.rb" : first)
        return source if source || @doubtful || !@extensions

        in_folders("#{name}.so", alone ? "#{name}.so" : first)
      end

      # The first folder that has the file. @doubtful: there may be one that this process can't be sure about.
      def in_folders(file, first)
        @doubtful = false
        candidates = @places[first] || []
        candidates.each do |place|
          path = "#{@list[place].path}/#{file}"
          found = Native.readable?(path)
          return doubtful if found.nil?
          return fresh?(place) ? path : doubtful if found
        end
        fresh?(@list.size) ? nil : doubtful
      end

      def doubtful
        @doubtful = true
        nil
      end

      # Have none of the changeable folders before this place changed since they were listed?
      def fresh?(place)
        stale = @changeable.take_while { |index| index < place }
                           .select { |index| state_of(@list[index].path) != @list[index].state }
        return true if stale.empty?

        @snapshot = nil # list them again at the next search
        stale.each { |index| @folders.delete_if { |_, folder| folder.equal?(@list[index]) } }
        false
      end

      # Takes $LOAD_PATH as it is now.
      # @return whether all of its entries are absolute paths
      def current?
        return @usable if $LOAD_PATH == @snapshot

        entries = $LOAD_PATH.dup
        @usable = entries.all? { |entry| entry.is_a?(String) && entry.start_with?("/") && entry.ascii_only? }
        @snapshot = entries.map { |entry| entry.is_a?(String) ? entry.dup : entry }
        @usable ? list(entries) : @counts.add(:relative_load_path)
        @usable
      end

      def list(entries)
        @list = entries.map { |entry| folder(entry) }
        @changeable = @list.each_index.reject { |index| @list[index].fixed }
        @places = {}
        @list.each_with_index do |folder, index|
          folder.names.each { |name| (@places[name] ||= []) << index }
        end
      end

      def folder(entry)
        known = @folders[entry]
        return known if known && (known.fixed || (known.path == real(entry) && state_of(known.path) == known.state))

        path = real(entry)
        state = state_of(path)
        @folders[entry.dup] = Folder.new(path, fixed?(path), state, state ? Dir.children(path) : [])
      end

      # Ruby, too, searches in the real folders.
      def real(entry)
        File.realpath(entry)
      rescue SystemCallError
        File.expand_path(entry)
      end

      def state_of(path)
        found = File.stat(path)
        [found.dev, found.ino, found.mtime, found.ctime] if found.directory?
      rescue SystemCallError
        nil
      end

      def fixed?(path)
        roots = RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir")
        if defined?(Gem) && Gem.respond_to?(:path)
          roots += Gem.path.flat_map { |home| %w[gems extensions bundler].map { |name| "#{home}/#{name}" } }
        end
        roots.any? { |root| path == root || path.start_with?("#{root}/") }
      end
    end
  end
end

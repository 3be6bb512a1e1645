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
      # A folder of $LOAD_PATH. `state` is its times when it was listed; nil: there was none. `settled`: a change since
      # then would have given it other times. `names` is nil where it can't be listed.
      Folder = Struct.new(:path, :fixed, :state, :settled, :names)
      # What is known of one $LOAD_PATH. It is never changed, only replaced as a whole: `require` runs in all threads,
      # and in traps, where no Mutex can be locked. `folders` has the Folder of each entry; `changeable` and `places`
      # have indexes of `list`.
      Listing = Struct.new(:entries, :usable, :folders, :list, :changeable, :places)
      NAME = %r{\A(?:[\w+-][\w+.-]*/)*[\w+-][\w+.-]*\z}
      COMPILED = /\.(?:so|o|dll|dylib|bundle)\z/
      # An exception that Thread#raise brings meanwhile is the program's: not to be rescued here.
      LATER = { StandardError => :never }.freeze
      private_constant :Folder, :Listing, :NAME, :COMPILED, :LATER

      #: (Counts) -> void
      def initialize(counts)
        @counts = counts
        @listing = nil
        @extensions = RbConfig::CONFIG["EXTSTATIC"].to_s.empty? # else Ruby has extensions that are no files
      end

      # Stands before Kernel#require.
      # @return [String, nil] why not: somebody else has replaced `require`
      #: () -> String?
      def install
        now = Kernel.instance_method(:require)
        return if now == @own

        plain = plain_require(now)
        return "require was replaced before (#{now.source_location.first})" if plain.nil?

        @rubygems = plain == :gem_original_require
        @ruby ||= @rubygems ? Kernel.instance_method(plain) : now
        come_before(now, plain)
        nil
      end

      # Bundler puts Ruby's own method back. Then this one has to come before it again.
      #: () -> void
      def keep
        now = Kernel.instance_method(:require)
        return if now == @own || now != @ruby

        @rubygems = false
        come_before(now, :pitwall_require_before)
      rescue NameError, FrozenError # there is no `require` just now, or Kernel is frozen
        nil
      end

      # @return the path that Ruby would find; nil: Ruby is to search
      #: (String) -> String?
      def find(name)
        Thread.handle_interrupt(LATER) do
          next @counts.add(:rubygems_decides) if @rubygems && rubygems_decides?(name)

          path = search(name) if name.ascii_only? && name.match?(NAME) && !name.match?(COMPILED)
          @counts.add(path ? :found : :not_found)
          path || nil
        rescue StandardError
          @listing = nil
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
        return unless file.match?(%r{rubygems/core_ext/kernel_require\.rb>?\z|/bundled_gems\.rb>?\z})

        :gem_original_require if Kernel.private_method_defined?(:gem_original_require)
      end

      # @param before the method to stand before. It is given as a method, not by its name: another thread may have put
      #   this one there meanwhile, which would then call itself.
      def come_before(before, plain)
        Kernel.module_eval do
          define_method(:pitwall_require_before, before)
          private :pitwall_require_before
        end
        Native.replace_require(self, plain)
        @own ||= Kernel.instance_method(:require)
      end

      # Would RubyGems activate a gem for it, or warn?
      def rubygems_decides?(name)
        return false unless defined?(Gem) && Gem.respond_to?(:find_unresolved_default_spec)
        return true if Gem.find_unresolved_default_spec(name) || !Gem::Specification.unresolved_deps.empty?
        return false unless defined?(Gem::BUNDLED_GEMS::SINCE)

        since = Gem::BUNDLED_GEMS::SINCE
        since.key?(name[%r{\A[^/]+}].delete_suffix(".rb")) || since.key?(name.delete_suffix(".rb").tr("/", "-"))
      end

      # @return as in_folders
      def search(name)
        listing = current
        return unless listing.usable

        first = name[%r{\A[^/]+}]
        alone = first == name
        return in_folders(listing, name, first) if name.end_with?(".rb")

        source = in_folders(listing, "#{name}.rb", alone ? "#{name}.rb" : first)
        return source unless source.nil? && @extensions

        in_folders(listing, "#{name}.so", alone ? "#{name}.so" : first)
      end

      # @return the file in the first folder that has it; nil: none has; false: this process can't be sure
      def in_folders(listing, file, first)
        (listing.places[first] || []).each do |place|
          path = "#{listing.list[place].path}/#{file}"
          found = Native.readable?(path)
          return false if found.nil?
          return fresh?(listing, place) && path if found
        end
        fresh?(listing, listing.list.size) ? nil : false
      end

      # Have the changeable folders before this place the names that they were listed with?
      def fresh?(listing, place)
        before = listing.changeable.take_while { |index| index < place }
        return true if before.all? { |index| same?(listing.list[index]) }

        @listing = Listing.new(nil, false, listing.folders).freeze # list them again at the next search
        false
      end

      # A folder that changed just before it was listed may have got another file at the same tick of the clock.
      def same?(folder)
        state = state_of(folder.path)
        return false if state != folder.state

        folder.settled || (!settled?(state) && Dir.children(folder.path) == folder.names)
      end

      # @return what is known of $LOAD_PATH as it is now
      def current
        listing = @listing
        return listing if listing && $LOAD_PATH == listing.entries

        entries = $LOAD_PATH.map { |entry| entry.is_a?(String) ? entry.dup.freeze : entry }.freeze
        @listing = listing_of(entries, listing ? listing.folders : {})
      end

      # @param known the folders that were listed before
      def listing_of(entries, known)
        unless entries.all? { |entry| entry.is_a?(String) && entry.start_with?("/") && entry.ascii_only? }
          @counts.add(:relative_load_path)
          return Listing.new(entries, false, known).freeze
        end

        list = entries.map { |entry| folder(entry, known[entry]) }.freeze
        folders = entries.zip(list).to_h.freeze
        return Listing.new(entries, false, folders).freeze unless list.all?(&:names)

        changeable = list.each_index.reject { |index| list[index].fixed }.freeze
        Listing.new(entries, true, folders, list, changeable, places_of(list)).freeze
      end

      def places_of(list)
        places = {}
        list.each_with_index do |folder, index|
          folder.names.each { |name| (places[name] ||= []) << index }
        end
        places.freeze
      end

      def folder(entry, known)
        return known if known && (known.fixed || unchanged?(entry, known))

        path = real(entry)
        state = state_of(path)
        settled = settled?(state) # as of now, before it is listed
        Folder.new(path, fixed?(path), state, settled, state ? names_in(path) : []).freeze
      end

      def unchanged?(entry, known)
        known.settled && known.path == real(entry) && state_of(known.path) == known.state
      end

      def names_in(path)
        Dir.children(path).freeze
      rescue Errno::EACCES => error
        @counts.because("no index of $LOAD_PATH", error.message)
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

      # Would a change from now on give the folder other times?
      def settled?(state)
        return true if state.nil?

        last = state.last(2).max
        Native.settled?((last.to_i * 1_000_000_000) + last.nsec)
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

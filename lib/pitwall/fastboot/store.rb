# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Writes a pack. One writer at a time, by a lock on a file beside it. A pack is only appended to, or replaced by
    # rename. A writer that is killed leaves whole records and perhaps a part of one. Readers ignore the part. The next
    # writer drops it.
    # @api private
    class Store
      # Code or data to be written: of which file, with which content, at which state. `body` is nil where the pack has
      # this content, and only the attributes are new.
      Addition = Struct.new(:kind, :key, :options, :attributes, :digest, :body) do
        def slot = [kind, key, options]

        def bytes = Format.record_size(key.bytesize, body.to_s.bytesize)
      end
      # A version in the pack; `number` is its place.
      Version = Struct.new(:key, :options, :attributes, :digest, :written_s, :size, :newest, :kind, :number) do
        def slot = [kind, key, options]

        # @return [String] the file's path, not the real path
        def path = Format.paths(key).first

        # A release may be gone, and its old path may now lead to another release. So the real path is checked.
        def there? = File.file?(Format.paths(key).last)

        def bytes = Format.record_size(key.bytesize, size)
      end

      LIMIT = 512 * 1024 * 1024 # bytes of a pack
      WASTE = 0.2 # of the bytes in use: how much of a pack may be out of use
      SLACK = 256 * 1024 # bytes out of use that never matter
      BUSY = "another process is writing it"
      private_constant :WASTE, :SLACK

      attr_reader :folder, :identity

      #: (String, ?identity: String, ?limit: Integer) -> void
      def initialize(folder, identity: Format.identity, limit: LIMIT)
        @folder = folder
        @identity = identity
        @limit = limit
      end

      #: () -> String
      def path = File.join(@folder, Format.file_name(@identity))

      # @return the pack, or why there is none
      #: () -> (Native::Pack | String)
      def open = Native::Pack.open(path, @identity)

      #: (Native::Pack) -> Array[Version]
      def self.versions(pack)
        pack.versions.each_with_index.map { |fields, number| Version.new(*fields, number) }
      end

      # Adds to the pack.
      # @param replace rewrite it, because something in it is damaged
      # @return [String, nil] why nothing was written
      #: (Array[Addition], ?wait: bool, ?replace: bool) -> String?
      def add(additions, wait: false, replace: false)
        locked(wait) do
          with_pack { |pack| pack.is_a?(String) ? rewrite(nil, additions) : add_to(pack, additions, replace) }
        end
      end

      # @return [String, nil] why this user can't write the pack. nil: can, or another process writes it just now
      #: () -> String?
      def unwritable
        reason = locked(false) { nil }
        reason unless reason == BUSY
      end

      # Rewrites the pack without what is out of use or whose file is gone.
      # @return [String, nil] why not
      #: (?frozen: bool?) -> String?
      def prune(frozen: nil)
        locked(true) do
          with_pack do |pack|
            pack.is_a?(String) ? pack : rewrite(pack, [], frozen: frozen.nil? ? pack.facts[3] : frozen)
          end
        end
      end

      # Deletes all packs of the folder, of all Rubies.
      # @return [Array<String>] what was deleted
      #: () -> Array[String]
      def clear
        removed = []
        failure = locked(true) do
          own = /\A(?:boot-[\w.-]+\.pack|last-boot|lazy-gems-\h+(?:\.try)?)(?:\.\d+\.new)?\z/
          names = Dir.children(@folder).grep(own).sort
          names.each { |name| File.unlink(File.join(@folder, name)) && removed << name }
          nil
        end
        failure ? raise(UsageError, "cannot clear #{@folder}: #{failure}") : removed
      end

      private

      def locked(wait)
        Folder.make(@folder)
        refusal = Folder.refusal(@folder)
        return refusal if refusal

        File.open(File.join(@folder, "lock"), File::RDWR | File::CREAT | File::NOFOLLOW, 0o644) do |lock|
          return BUSY unless lock.flock(wait ? File::LOCK_EX : File::LOCK_EX | File::LOCK_NB)

          yield
        ensure
          lock.flock(File::LOCK_UN) # a child that was forked meanwhile has the file open and would keep the lock
        end
      rescue SystemCallError => error
        error.class.new.message # without the name of a C function
      end

      # The pack as it is now. It is closed afterwards.
      def with_pack
        pack = open
        yield pack
      ensure
        pack.close if pack && !pack.is_a?(String)
      end

      def add_to(pack, additions, replace)
        size, valid_size, _, frozen = pack.facts
        return "the pack is frozen" if frozen

        versions = Store.versions(pack)
        additions = new_ones(versions, additions) unless replace # what the pack has of them may be damaged
        return nil if additions.empty? && !replace
        return rewrite(pack, additions) if replace || valid_size < size || wasteful?(versions, valid_size, additions)

        append(additions)
      end

      # Others may have written the same meanwhile.
      def new_ones(versions, additions)
        known = versions.to_h { |version| [[version.slot, version.digest], version.attributes] }
        additions.reject do |addition|
          attributes = known[[addition.slot, addition.digest]]
          addition.body ? attributes : attributes.nil? || attributes == addition.attributes
        end
      end

      def wasteful?(versions, valid_size, additions)
        coming = additions.sum(&:bytes)
        return true if valid_size + coming > @limit

        fresh = additions.select(&:body)
        replaced = fresh.to_h { |addition| [addition.slot, true] }
        # To look at all files takes time. They are looked at only if much is added, as by a new release.
        live = versions.sum do |version|
          version.newest && !replaced[version.slot] && (coming < SLACK || version.there?) ? version.bytes : 0
        end
        used = live + fresh.sum(&:bytes)
        valid_size + coming - used > (used * WASTE) + SLACK
      end

      def append(additions)
        Folder.check_room(@limit)
        File.open(path, File::WRONLY | File::APPEND | File::NOFOLLOW) do |file|
          Folder.prepare(file)
          additions.each { |addition| file.write(record(addition)) }
        end
        nil
      end

      def record(addition, written_s = Time.now.to_i)
        Format.record(addition.kind, addition.key, addition.options, addition.attributes, addition.digest, written_s,
                      addition.body)
      end

      # A new pack of the newest versions and the additions.
      def rewrite(pack, additions, frozen: false)
        Folder.check_room(@limit)
        drop_left_over
        Folder.replace(path, File::EXCL) do |file|
          file.write(Format.header(@identity, frozen: frozen))
          kept(pack, additions).each do |version, seen|
            body = pack.body(version.number) or next # damaged
            addition = Addition.new(version.kind, version.key, version.options, seen, version.digest, body)
            file.write(record(addition, version.written_s))
          end
          additions.each { |addition| file.write(record(addition)) if addition.body }
        end
        nil
      end

      # What killed writers have left. The caller has the lock, so no writer is at work.
      def drop_left_over
        left = Dir.children(@folder).grep(/\Aboot-[\w.-]+\.pack\.\d+\.new\z/)
        left.each { |name| File.unlink(File.join(@folder, name)) }
      end

      # @return [Hash{Version => Array<Integer>}] what stays of the old pack, with the files' attributes
      def kept(pack, additions)
        return {} if pack.nil?

        fresh, seen = additions.partition(&:body)
        replaced = fresh.to_h { |addition| [addition.slot, true] }
        seen = seen.to_h { |addition| [[addition.slot, addition.digest], addition.attributes] }
        versions = Store.versions(pack).select do |version|
          version.newest && !replaced[version.slot] && version.there?
        end
        within_limit(versions, fresh).to_h do |version|
          [version, seen.fetch([version.slot, version.digest], version.attributes)]
        end
      end

      # The youngest, as many as the limit allows.
      def within_limit(versions, fresh)
        left = (@limit * 0.8) - fresh.sum(&:bytes)
        chosen = versions.sort_by { |version| -version.written_s }.take_while { |version| (left -= version.bytes) >= 0 }
        chosen.sort_by(&:number)
      end
    end
  end
end

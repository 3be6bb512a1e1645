# frozen_string_literal: true

module Pitwall
  module Fastboot
    # The pack that this process reads, and what waits to be written to it. Compiled code and data share it.
    # @api private
    class ProcessPack
      FLUSH_AT = 32 * 1024 * 1024 # bytes that wait to be written
      private_constant :FLUSH_AT

      # @return [Native::Pack, nil] what is read; nil: there was no pack
      attr_reader :read

      #: (Store, Counts, readonly: bool) -> void
      def initialize(store, counts, readonly:)
        @store = store
        @counts = counts
        pack = store.open
        counts.because("when the program started", store.path, pack) if pack.is_a?(String)
        @read = pack unless pack.is_a?(String)
        @readonly = readonly || (@read && @read.facts[3])
        @pid = Process.pid
        @additions = []
        @waiting = 0
        @seen = {} # kinds, keys and options that remember_once was given
      end

      #: () -> bool
      def readonly? = @readonly ? true : false

      # What the pack has of a file.
      # @param kind Format::CODE or Format::DATA
      # @return the code or the bytes of the data, nil: none; and :hit, :hit_by_content, :hit_moved or why there is none
      #: (Integer, String, Integer) -> [untyped, Symbol]
      def find(kind, path, options)
        found = @read ? @read.load(kind, path, options) : :missing
        return [found, :hit] unless found.is_a?(Symbol)

        found = by_content(kind, path, options) if found == :changed
        return [found, :hit_by_content] unless found.is_a?(Symbol)

        moved = from_elsewhere(kind, path, options) if found == :missing && @read
        return [moved, :hit_moved] if moved

        rewrite if %i[damaged refused].include?(found)
        [nil, found]
      end

      # What the pack has of a file can't be used. The next flush replaces it by what was remembered meanwhile.
      #: () -> void
      def rewrite
        @replace = true
      end

      # Adds a record when the pack is written next.
      # @param body nil: the pack has the content, only the attributes are new
      #: (Integer, String, Integer, Array[Integer], String, String?) -> void
      def remember(kind, key, options, attributes, digest, body)
        own_process
        @additions << Store::Addition.new(kind, key, options, attributes, digest, body)
        @waiting += body.to_s.bytesize
        flush if @waiting > FLUSH_AT
      end

      # Writes what was remembered.
      # @param last the process ends. Otherwise what can't be written now waits for the next time.
      #: (?wait: bool, ?last: bool) -> void
      def flush(wait: false, last: false)
        own_process
        return if @readonly || (@additions.empty? && !@replace)

        additions, @additions, @waiting = @additions, [], 0
        failure = @store.add(additions, wait: wait, replace: @replace)
        return put_back(additions) if failure == Store::BUSY && !last

        @replace = false
        @counts.because("nothing was stored", failure) if failure
      end

      private

      # What the pack has of a file that was touched, copied or checked out again: its content decides.
      def by_content(kind, path, options)
        key, = Native.place(path)
        digest, attributes = Native.read(path)
        return :changed if key.nil? || digest.nil?

        found = @read.load_version(kind, key, options, digest) || :changed
        return found if found.is_a?(Symbol)

        remember_once(kind, key, options, attributes, digest, nil) unless attributes.last.zero?
        found
      end

      # What the pack has of a file with the same content at another path.
      def from_elsewhere(kind, path, options)
        key, = Native.place(path)
        digest, attributes = Native.read(path)
        from, body = @read.with_content(kind, options, digest) if key && digest
        return if body.nil?

        found = body
        if kind == Format::CODE
          source = FileState.content(path, digest) or return
          body = MovedCode.binary(body, from, key, source) or return
          found = RubyVM::InstructionSequence.load_from_binary(body)
          return unless Format.code_of?(found, key)
        end
        remember_once(kind, key, options, attributes, digest, body)
        found
      end

      # As `remember`, but not again when the file is loaded again.
      def remember_once(kind, key, options, *rest)
        slot = [kind, key, options]
        remember(*slot, *rest) unless @readonly || @seen[slot]
        @seen[slot] = true
      end

      # Another process is writing.
      def put_back(additions)
        @additions = additions + @additions
        @waiting = @additions.sum { |addition| addition.body.to_s.bytesize }
      end

      # A child does not write what its parent compiled.
      def own_process
        return if @pid == Process.pid

        @pid = Process.pid
        @additions = []
        @waiting = 0
      end
    end
  end
end

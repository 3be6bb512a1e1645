# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Gives Ruby the compiled code of files that it loads. Ruby asks RubyVM::InstructionSequence.load_iseq for each file
    # of `require`, `require_relative`, `load` and `autoload`, and compiles the file itself when the answer is nil.
    #
    # The code to store is what Ruby itself compiled (the event :script_compiled), so that it has the same labels,
    # encodings and warnings as without a cache.
    # @api private
    class CompileCache
      FLUSH_AT = 32 * 1024 * 1024 # bytes of code that wait to be written
      CATEGORIES = (Warning.respond_to?(:categories) ? Warning.categories : %i[deprecated experimental]).freeze
      CODE = RubyVM::InstructionSequence
      FAILURES = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze
      # An exception that Thread#raise brings meanwhile is the program's: not to be rescued here.
      LATER = { StandardError => :never }.freeze
      private_constant :FLUSH_AT, :CATEGORIES, :CODE, :FAILURES, :LATER

      # Notices warnings while a file is compiled: code from a pack would not print them.
      module Noticed
        def warn(*, **)
          Fastboot.cache&.warned if Fastboot.main_ractor?
          super
        end
      end

      # A file that Ruby is going to compile. `warned`: its thread printed a warning meanwhile.
      Expected = Struct.new(:path, :options, :key, :attributes, :before, :warned)
      private_constant :Expected

      #: (Store, Counts, readonly: bool) -> void
      def initialize(store, counts, readonly:)
        @store = store
        @counts = counts
        pack = store.open
        counts.because(store.path, pack) if pack.is_a?(String)
        @pack = pack unless pack.is_a?(String)
        @readonly = readonly || (@pack && @pack.facts[3])
        @expected = {} # by thread
        @tracer = TracePoint.new(:script_compiled) { |event| compiled(event) }
        @pid = Process.pid
        @additions = []
        @waiting = 0
      end

      #: () -> bool
      def readonly? = @readonly ? true : false

      # Becomes the hook.
      # @return [String, nil] why not: another cache has it
      #: () -> String?
      def install
        hook = CODE.method(:load_iseq) if CODE.respond_to?(:load_iseq)
        return "#{hook.source_location&.first || hook.owner} has RubyVM::InstructionSequence.load_iseq" if hook

        Native.serve(self, @pack, @expected, @counts)
        CODE.singleton_class.prepend(Hook) # Ruby itself undefines the method there
        nil
      end

      # Was another cache installed later? It is asked first then.
      #: () -> String?
      def successor
        hook = CODE.method(:load_iseq)
        "#{hook.source_location&.first} took RubyVM::InstructionSequence.load_iseq" unless hook.owner == Hook
      end

      # @return the code of a file; nil: Ruby is to compile it
      #: (String) -> RubyVM::InstructionSequence?
      def load(path)
        Thread.handle_interrupt(LATER) do
          code_of(path)
        rescue *FAILURES => error
          @counts.because(path, error.class, error.message)
        end
      end

      # This thread prints a warning.
      #: () -> void
      def warned
        expected = @expected[Thread.current]
        expected.warned = true if expected
      end

      # Writes what was compiled.
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

      def code_of(path)
        @expected.delete(Thread.current) unless @expected.empty?
        reason = doubt
        return @counts.add(reason) if reason

        options = options_now
        found = @pack ? @pack.load(path, options) : :missing
        return hit(found, :hit) if found.is_a?(CODE)

        found = by_content(path, options) if found == :changed
        return hit(found, :hit_by_content) if found.is_a?(CODE)

        @counts.add(found)
        @replace = true if found == :damaged
        expect(path, options) unless @readonly || %i[odd refused].include?(found)
        nil
      end

      def hit(code, how)
        @counts.add(how)
        code
      end

      # Why this process has to compile files, if it has to.
      def doubt
        return :verbose if $VERBOSE
        return :coverage if Fastboot.covered?

        :script_lines if Native.source_kept?
      end

      # A hash of all that changes compiled code, or the warnings of compiling.
      def options_now
        now = [CODE.compile_option, *CATEGORIES.map { |category| Warning[category] }]
        known = @options # both parts at once: other threads replace it
        return known.last if known && known.first == now

        text = now.first.sort_by { |name, _| name }.inspect + now.drop(1).inspect
        sum = Native.sum(text)
        Native.options_are(now.first, CATEGORIES.zip(now.drop(1)).freeze, sum)
        @options = [now, sum].freeze
        sum
      end

      # The code of a file that was touched, copied or checked out again: its content decides.
      def by_content(path, options)
        key, = Native.place(path)
        digest, attributes = Native.read(path)
        return :changed if key.nil? || digest.nil?

        code = @pack.load_version(key, options, digest)
        return code || :changed unless code.is_a?(CODE)

        remember(Format::SEEN, key, options, attributes, digest, "") unless @readonly || attributes.last.zero?
        code
      end

      # Prepares for the event of the file's compilation, on this thread.
      def expect(path, options)
        return if $VERBOSE.nil? # would not print warnings

        key, attributes = Native.place(path)
        return if key.nil?

        before = Native.read(path) unless Native.settled?(attributes.last)
        watch_warnings
        @expected[Thread.current] = Expected.new(path, options, key, attributes, before, false)
        @tracer.enable unless @tracer.enabled?
      end

      def watch_warnings
        return if @watching

        @watching = true
        Warning.singleton_class.prepend(Noticed)
      end

      # Its exceptions would come out of the program's `require`.
      def compiled(event)
        Thread.handle_interrupt(LATER) do
          expected = @expected.delete(Thread.current) or next
          @tracer.disable if @expected.empty?
          store_code(expected, event.instruction_sequence) unless event.eval_script
        rescue *FAILURES => error
          @counts.add(:undumpable)
          @counts.because(expected&.path, error.class, error.message)
        end
      end

      def store_code(expected, code)
        return unless code.path == expected.path
        return @counts.add(:warned) if expected.warned

        digest, attributes = Native.read(expected.path)
        return @counts.add(:moving) unless unchanged?(expected, digest, attributes)

        remember(Format::CODE, expected.key, expected.options, attributes, digest, code.to_binary)
        @counts.add(:stored)
      end

      # Did Ruby read the content that has this digest?
      def unchanged?(expected, digest, attributes)
        return false if digest.nil?

        expected.before ? expected.before.first == digest : expected.attributes == attributes
      end

      def remember(kind, key, options, attributes, digest, body)
        own_process
        @additions << Store::Addition.new(kind, key, options, attributes, digest, body)
        @waiting += body.bytesize
        flush if @waiting > FLUSH_AT
      end

      # Another process is writing.
      def put_back(additions)
        @additions = additions + @additions
        @waiting = @additions.sum { |addition| addition.body.bytesize }
      end

      # What a parent compiled is the parent's to write.
      def own_process
        return if @pid == Process.pid

        @pid = Process.pid
        @additions = []
        @waiting = 0
      end
    end
  end
end

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
      CATEGORIES = (Warning.respond_to?(:categories) ? Warning.categories : %i[deprecated experimental]).freeze
      CODE = RubyVM::InstructionSequence
      # Of files without a comment that says so. `ruby -K` sets it, and nothing else tells it. This file has no such
      # comment, and no code of it comes from a pack.
      SOURCE_ENCODING = __ENCODING__.name.freeze
      private_constant :CATEGORIES, :CODE, :SOURCE_ENCODING

      # A file that Ruby is going to compile.
      Expected = Struct.new(:state, :options)
      private_constant :Expected

      #: (ProcessPack, Counts) -> void
      def initialize(pack, counts)
        @pack = pack
        @counts = counts
        @expected = {} # by thread
        @tracer = TracePoint.new(:script_compiled) { |event| compiled(event) }
      end

      # Puts the hook in place. It gives no code before a cache is started.
      # @return [String, nil] why not: another cache has it
      #: () -> String?
      def self.take_hook
        other = CODE.method(:load_iseq) if CODE.respond_to?(:load_iseq)
        if other && !disabled_bootsnap?
          return "#{other.source_location&.first || other.owner} has RubyVM::InstructionSequence.load_iseq"
        end

        Native.take_hook(other)
        Native.watch_options
        nil
      end

      # Is bootsnap loaded, and disabled? Then its load_iseq returns nil, unless the application compiles with options.
      def self.disabled_bootsnap?
        defined?(::Bootsnap::CompileCache::ISeq.cache_dir) && ::Bootsnap::CompileCache::ISeq.cache_dir.nil?
      end
      private_class_method :disabled_bootsnap?

      # From now on the hook asks this cache.
      #: () -> void
      def start = Native.serve(self, @pack.read, @expected, @counts)

      # Is another cache asked first, and has it given code?
      #: () -> String?
      def successor
        hook = CODE.method(:load_iseq)
        return if ours?(hook) && !@counts.any?(:from_others)

        hook = hook.super_method while hook && ours?(hook)
        "#{hook.source_location&.first} took RubyVM::InstructionSequence.load_iseq" if hook
      end

      # @return the code of a file; nil: Ruby is to compile it
      #: (String) -> RubyVM::InstructionSequence?
      def load(path)
        Thread.handle_interrupt(Exceptions::LATER) do
          code_of(path)
        rescue *Exceptions::OWN => error
          @counts.because(path, error.class, error.message)
        end
      end

      private

      def code_of(path)
        forget_failed unless @expected.empty?
        reason = doubt
        return @counts.add(reason) if reason

        options = options_now or return @counts.add(:debug_strings)
        options = Native.with_encodings(options, path)
        code, how = @pack.find(Format::CODE, path, options)
        @counts.add(how)
        return code if code

        expect(path, options) unless @pack.readonly? || how == :odd
        nil
      end

      # Forgets files whose compilation failed on this thread or on a thread that has ended.
      def forget_failed
        @expected.delete(Thread.current)
        @expected.delete_if { |thread, _| !thread.alive? }
      end

      def ours?(method) = [Hook, HookInFront].include?(method.owner)

      # Why this process has to compile files, if it has to.
      def doubt
        return :verbose if $VERBOSE
        return :coverage if Fastboot.covered?

        :script_lines if Native.source_kept?
      end

      # A hash of all that changes compiled code, or the warnings of compiling.
      # @return [Integer, nil] nil: strings are to say where they were made, which code from a pack does not
      def options_now
        changes = Native.option_changes
        now = [CODE.compile_option, *CATEGORIES.map { |category| Warning[category] }]
        return if now.first[:debug_frozen_string_literal]

        known = @options # one variable: another thread may replace @options between two reads
        known = @options = [now, sum_of(*now)].freeze unless known && known.first == now
        Native.options_are(known.last, changes)
        known.last
      end

      def sum_of(compile_option, *warnings)
        Native.sum(compile_option.sort_by { |name, _| name }.inspect + warnings.inspect + SOURCE_ENCODING)
      end

      # Prepares for the event of the file's compilation, on this thread.
      def expect(path, options)
        return @counts.add(:silenced) if $VERBOSE.nil?

        state = FileState.of(path)
        return if state.nil?

        return @counts.add(:unwatched) unless Warnings.listen

        @expected[Thread.current] = Expected.new(state, options)
        @tracer.enable unless @tracer.enabled?
      end

      # Its exceptions would come out of the program's `require`.
      def compiled(event)
        Thread.handle_interrupt(Exceptions::LATER) do
          expected = @expected.delete(Thread.current) or next
          @tracer.disable if @expected.empty?
          store_code(expected, event.instruction_sequence) unless event.eval_script
        rescue *Exceptions::OWN => error
          @counts.add(:undumpable)
          @counts.because(expected&.state&.path, error.class, error.message)
        end
      end

      def store_code(expected, code)
        quiet = Warnings.none?
        state = expected.state
        return unless Format.code_of?(code, state.key) && usual_encoding?(code)
        return @counts.add(:warned) unless quiet

        digest, attributes = state.unchanged
        return @counts.add(:moving) if digest.nil?
        return if code.trace_points.empty? && !blank?(state.path)

        @pack.remember(Format::CODE, state.key, expected.options, attributes, digest, code.to_binary)
        @counts.add(:stored)
      end

      # Ruby caches real paths. The cached String may have the encoding that file names had earlier.
      def usual_encoding?(code)
        path = code.absolute_path
        return true if path == code.path

        usual = path.dup.force_encoding(Encoding.find("filesystem"))
        path.encoding == (usual.valid_encoding? ? usual.encoding : Encoding::BINARY)
      end

      # Ruby's older parser gives a file with an error in its syntax the code of an empty file, and raises later. So
      # code without a line is only stored for a file without one.
      def blank?(path) = File.binread(path).each_line("\n").all? { |line| line.match?(/\A\s*(?:#.*)?\s*\z/n) }
    end
  end
end

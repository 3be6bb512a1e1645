# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/syscall"
require "pitwall/record/warning"

module Pitwall
  module Record
    # A log of system calls that another tool wrote: the study's `call<TAB>path`, strace, dtruss, bpftrace scripts; plain or gzip.
    # What it is shows in its content. It is read as a stream, in bounded memory, and treated as hostile: a line that
    # makes no sense is counted, not believed.
    #
    # Reading order: syscall_log/blocks.rb (bytes → lines), one file a format (lines → calls), syscall_log/descriptors.rb
    # (which path a descriptor stands for).
    class SyscallLog
      autoload :Blocks, "pitwall/record/syscall_log/blocks"
      autoload :Bpftrace, "pitwall/record/syscall_log/bpftrace"
      autoload :Descriptors, "pitwall/record/syscall_log/descriptors"
      autoload :Dtruss, "pitwall/record/syscall_log/dtruss"
      autoload :Escapes, "pitwall/record/syscall_log/escapes"
      autoload :Plain, "pitwall/record/syscall_log/plain"
      autoload :Refusals, "pitwall/record/syscall_log/refusals"
      autoload :Strace, "pitwall/record/syscall_log/strace"

      # Name → class; where several would read a line, the first that reads the most of them.
      FORMATS = { "plain" => :Plain, "strace" => :Strace, "dtruss" => :Dtruss, "bpftrace" => :Bpftrace }.freeze
      # Lines at the beginning by which a format is recognised.
      LOOKED_AT = 400
      # What begins otherwise and is often given by mistake.
      OTHERS = { "PITWALL " => "is a recording, which is read from a file: pitwall syscalls FILE.pit", "\x28\xB5\x2F\xFD" => "is compressed by zstd: zstd -dc FILE | pitwall syscalls -",
                 "BZh" => "is compressed by bzip2: bzip2 -dc FILE | pitwall syscalls -", "\xFD7zXZ" => "is compressed by xz: xz -dc FILE | pitwall syscalls -",
                 "\x7FELF" => "is a program, not a log", "PK\x03\x04" => "is a zip archive: unpack it first" }.transform_keys(&:b).freeze
      private_constant :FORMATS, :LOOKED_AT, :OTHERS

      # @param source [String, IO] a path (`-` is standard input), or what is read from
      # @param name [String] what messages call it
      # @raise [UsageError] no such file, or a directory
      # @raise [BadRecording] empty, or in none of the formats
      #: (String | IO, ?name: String?) -> SyscallLog
      def self.open(source, name: nil)
        return new(source, name || "the log") unless source.is_a?(String)
        return new($stdin, "standard input") if source == "-"
        raise UsageError, "#{source}: is a directory: name a log in it" if File.directory?(source)

        new(File.open(source, "rb"), name || source)
      rescue Errno::ENOENT, Errno::ENOTDIR
        raise UsageError, "#{source}: no such file"
      rescue SystemCallError, ArgumentError => error
        raise BadRecording, "#{source.inspect}: cannot be read: #{error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message}"
      end

      # Bytes of a file that parts are worth it for, and how far from its share a part may begin.
      LARGE = 16 << 20
      NEAR = 8 << 20
      private_constant :LARGE, :NEAR

      # "plain", "strace", "dtruss" or "bpftrace"
      # @return [String]
      attr_reader :format
      # What messages call it.
      # @return [String]
      attr_reader :name

      # @param format [String, nil] known already
      # @api private
      def initialize(io, name, format: nil)
        @name = name
        @io = io
        io.binmode if io.respond_to?(:binmode)
        @blocks = Blocks.new(io)
        @first = @blocks.take(LOOKED_AT)
        @format = format || recognised or raise BadRecording, "#{name}: #{unknown}"
        @parser = self.class.const_get(FORMATS.fetch(@format)).new
      end

      # Each call in the order of the log; once.
      # @yield [Syscall] must not be changed: equal lines may give one and the same; a {BareSyscall} where the log is {bare?}
      #: () { (Syscall) -> void } -> void
      def each(&block)
        @parser.lines(@first, &block)
        @first = []
        @blocks.each { |lines| @parser.lines(lines, &block) }
        @parser.finish(&block)
      end

      # The same of a log that is {bare?}, in a third of the time.
      # @param kinds [Hash] name → what is yielded in its stead; what `learn` answers is yielded where there is none
      # @yield [kind, BareSyscall] the second has a path but no name
      #: (Hash[String, untyped], ^(String) -> untyped) { (untyped, BareSyscall) -> void } -> void
      def each_bare(kinds, learn, &block)
        lines = ->(found) { @parser.lines(found) { |call| yield kinds[call.name] || learn.call(call.name), call } }
        lines.call(@first)
        @first = []
        @blocks.each(halves: true) { |found, halves| halves ? @parser.halves(found, kinds, learn, &block) : lines.call(found) }
      end

      # The log in parts of about the same size that can be read side by side, or only itself where it is small, no plain file, or its lines depend on those before.
      # @yield [name] whether no pattern goes across such a call: a part may begin with one
      # @return [Array<SyscallLog>]
      #: (Integer, ?least: Integer) { (String) -> bool } -> Array[SyscallLog]
      def parts(count, least: LARGE, &apart)
        return [self] unless @format == "plain" && @io.is_a?(File) && @io.size >= least && !@blocks.packed?

        cuts = (1...count).filter_map { |number| cut(@io.size * number / count, &apart) }.uniq
        [0, *cuts].zip([*cuts, @io.size]).map { |from, to| self.class.new(Part.new(@io.path, from, to), @name, format: @format) }
      end

      # Whether it is a file that takes seconds.
      #: () -> bool
      def long? = @io.is_a?(File) && @io.size >= LARGE

      # Lines that hold no call: half written, garbled, of another tool. What is known once {each} has ended.
      #: () -> Integer
      def unreadable = @parser.unreadable + @blocks.dropped

      # What could not be read, as plain values; and those of a part that another process read.
      # @api private
      def losses = [unreadable, first_unreadable, @blocks.fault, @parser.remarks]

      # @api private
      def add(losses) = (@added ||= []) << losses

      # Whether calls are told apart by process and thread.
      #: () -> bool
      def bare? = @format == "plain"

      # What the reader of a report should know.
      #: () -> Array[Warning]
      def warnings
        counts, firsts, faults, remarks = (@added || [losses]).transpose
        count = counts.sum
        texts = []
        texts << "#{count} line#{"s" if count > 1} could not be read (the first: #{shown(firsts.compact.find { |line| !line.empty? }.to_s)}); the rest counts" if count.positive?
        texts.push(*faults.compact.first, *remarks.flatten.uniq).map { |text| Warning.new(code: :skipped, message: "#{name}: #{text}") }
      end

      # A piece of a file.
      # @api private
      class Part
        def initialize(path, from, to)
          @io = File.open(path, "rb")
          @io.seek(from)
          @left = to - from
        end

        def read(size)
          data = @io.read([size, @left].min) if @left.positive?
          @left -= data.bytesize if data
          data
        end
      end
      private_constant :Part

      private

      # The first line from there on that a part may begin with.
      def cut(from)
        File.open(@io.path, "rb") do |io|
          io.seek(from)
          at = from + io.gets("\n", NEAR).to_s.bytesize
          while at - from < NEAR && (line = io.gets("\n", NEAR))
            tab = line.index("\t")
            return at if tab && yield(line.byteslice(0, tab))

            at += line.bytesize
          end
        end
        nil
      end

      def first_unreadable = @parser.first_unreadable || @blocks.first_dropped || ""

      # Somebody else's bytes on the user's terminal: few, and none that does anything.
      def shown(line) = line.byteslice(0, 60).force_encoding(Encoding::UTF_8).scrub("?").dump

      def recognised
        looked = @first.reject { |line| line.strip.empty? }
        return nil if looked.empty?

        best = FORMATS.map { |format, kind| [format, self.class.const_get(kind).fitting(looked)] }.max_by { |_, fitting| fitting }
        # Half a log may be what a program wrote between the lines; a document that mentions a call is none.
        best[0] if best[1].positive? && best[1] * 4 >= looked.size
      end

      def unknown
        other = OTHERS.find { |magic, _| @blocks.beginning.start_with?(magic) }
        return other[1].gsub("FILE", name) if other
        return @blocks.fault || "is empty" if @first.all? { |line| line.strip.empty? }
        return "is a summary (strace -c), which has no calls: leave out -c" if @first.any? { |line| line.match?(/\A% time +seconds/n) }

        "holds no system calls that could be read: neither call<TAB>path nor lines of strace, dtruss or bpftrace"
      end
    end
  end
end

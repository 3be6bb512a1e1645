# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/syscall"
require "pitwall/record/warning"

module Pitwall
  module Record
    # A log of system calls that another tool wrote: strace, dtruss, a bpftrace script, or lines of `call<TAB>path`. The
    # log may be compressed by gzip. Its content tells the format.
    # The log is read as a stream in bounded memory. It is not trusted: a line that is no call is counted and skipped.
    #
    # Reading order: syscall_log/blocks.rb (bytes → lines), one file for each format (lines → calls),
    # syscall_log/descriptors.rb (which path a file descriptor stands for).
    class SyscallLog
      autoload :Blocks, "pitwall/record/syscall_log/blocks"
      autoload :Bpftrace, "pitwall/record/syscall_log/bpftrace"
      autoload :Descriptors, "pitwall/record/syscall_log/descriptors"
      autoload :Dtruss, "pitwall/record/syscall_log/dtruss"
      autoload :Escapes, "pitwall/record/syscall_log/escapes"
      autoload :Plain, "pitwall/record/syscall_log/plain"
      autoload :Refusals, "pitwall/record/syscall_log/refusals"
      autoload :Strace, "pitwall/record/syscall_log/strace"

      # Name → class. The format that reads the most lines is taken; of equal ones the first.
      FORMATS = { "plain" => :Plain, "strace" => :Strace, "dtruss" => :Dtruss, "bpftrace" => :Bpftrace }.freeze
      # Lines at the beginning that tell the format.
      LOOKED_AT = 400
      # Files that are often given by mistake, by their first bytes.
      MISTAKES = {
        "PITWALL " => "is a recording, which is read from a file: pitwall syscalls FILE.pit",
        "\x28\xB5\x2F\xFD" => "is compressed by zstd: zstd -dc FILE | pitwall syscalls -",
        "BZh" => "is compressed by bzip2: bzip2 -dc FILE | pitwall syscalls -",
        "\xFD7zXZ" => "is compressed by xz: xz -dc FILE | pitwall syscalls -",
        "\x7FELF" => "is a program, not a log",
        "PK\x03\x04" => "is a zip archive: unpack it first"
      }.transform_keys(&:b).freeze
      private_constant :FORMATS, :LOOKED_AT, :MISTAKES

      # @param source [String, IO] a path (`-` is standard input), or an IO
      # @param name [String] the log's name in messages
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
        reason = error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message
        raise BadRecording, "#{source.inspect}: cannot be read: #{reason}"
      end

      # Bytes from which on a file is worth reading in parts.
      LARGE = 16 << 20
      # Bytes to look through for a line that a part can begin with.
      NEAR = 8 << 20
      private_constant :LARGE, :NEAR

      # "plain", "strace", "dtruss" or "bpftrace"
      # @return [String]
      attr_reader :format
      # The log's name in messages.
      # @return [String]
      attr_reader :name

      # @param format [String, nil] nil: the content tells it
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

      # Reads the log, once, and yields each call in the order of the log.
      # @yield [Syscall] a {BareSyscall} where the log is {bare?}; equal lines may give the same object, so don't change
      # it
      #: () { (Syscall) -> void } -> void
      def each(&block)
        @parser.lines(@first, &block)
        @first = []
        @blocks.each { |lines| @parser.lines(lines, &block) }
        @parser.finish(&block)
      end

      # Does what {each} does for a log that is {bare?}, in a third of the time.
      # @param kinds [Hash] call's name → the value that is yielded for the name
      # @param learn [Proc] gives the value for a name that `kinds` does not have
      # @yield [kind, BareSyscall] the call has a path but no name
      #: (Hash[String, untyped], ^(String) -> untyped) { (untyped, BareSyscall) -> void } -> void
      def each_bare(kinds, learn, &block)
        lines = ->(found) { @parser.lines(found) { |call| yield kinds[call.name] || learn.call(call.name), call } }
        lines.call(@first)
        @first = []
        @blocks.each(fields: true) do |found, fields|
          fields ? @parser.fields(found, kinds, learn, &block) : lines.call(found)
        end
      end

      # Divides the log into parts of about the same size that can be read in parallel. A log that is small, is no
      # regular file, or has lines that depend on earlier ones is one part.
      # @yield [name] whether a part may begin with a call of that name, because no pattern continues across the call
      # @return [Array<SyscallLog>]
      #: (Integer, ?least: Integer) { (String) -> bool } -> Array[SyscallLog]
      def parts(count, least: LARGE, &apart)
        return [self] unless @format == "plain" && @io.is_a?(File) && @io.size >= least && !@blocks.packed?

        cuts = (1...count).filter_map { |number| cut(@io.size * number / count, &apart) }.uniq
        [0, *cuts].zip([*cuts, @io.size]).map do |from, to|
          self.class.new(Part.new(@io.path, from, to), @name, format: @format)
        end
      end

      # Whether reading the log takes seconds.
      #: () -> bool
      def long? = @io.is_a?(File) && @io.size >= LARGE

      # Number of lines that are no call: half written, garbled, or of another tool. Complete once {each} has ended.
      #: () -> Integer
      def unreadable = @parser.unreadable + @blocks.dropped

      # What could not be read, as plain values that can be sent to another process.
      # @api private
      def losses = [unreadable, first_unreadable, @blocks.fault, @parser.remarks]

      # Adds the losses of a part that another process read.
      # @api private
      def add(losses) = (@added ||= []) << losses

      # Whether the log has names and paths only: no processes, results or times.
      #: () -> bool
      def bare? = @format == "plain"

      # What the reader of a report should know.
      #: () -> Array[Warning]
      def warnings
        counts, firsts, faults, remarks = (@added || [losses]).transpose
        count = counts.sum
        texts = []
        if count.positive?
          first = firsts.compact.find { |line| !line.empty? }.to_s
          texts << "#{count} line#{"s" if count > 1} could not be read (the first: #{shown(first)}); the rest counts"
        end
        texts.push(*faults.compact.first, *remarks.flatten.uniq)
        texts.map { |text| Warning.new(code: :skipped, message: "#{name}: #{text}") }
      end

      # Bytes from..to of a file, readable like an IO.
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

      # The offset of the first line behind `from` that a part may begin with.
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

      # A line of the log for the terminal: 60 bytes at most, control characters escaped.
      def shown(line) = line.byteslice(0, 60).force_encoding(Encoding::UTF_8).scrub("?").dump

      def recognised
        looked = @first.reject { |line| line.strip.empty? }
        return nil if looked.empty?

        fitting = FORMATS.transform_values { |kind| self.class.const_get(kind).fitting(looked) }
        format, lines = fitting.max_by { |_, count| count }
        # A program's own output may stand between the lines. A document that mentions a call is no log.
        format if lines.positive? && lines * 4 >= looked.size
      end

      def unknown
        other = MISTAKES.find { |magic, _| @blocks.beginning.start_with?(magic) }
        return other[1].gsub("FILE", name) if other
        return @blocks.fault || "is empty" if @first.all? { |line| line.strip.empty? }
        summary = @first.any? { |line| line.match?(/\A% time +seconds/n) }
        return "is a summary (strace -c), which has no calls: leave out -c" if summary

        "holds no system calls that could be read: neither call<TAB>path nor lines of strace, dtruss or bpftrace"
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/launch/perf"

module Pitwall
  class Launch
    # What `perf record -o -` writes, with what perf needs to unwind the stacks of a process that has called exec.
    #
    # perf keeps the memory map of the program before the exec. It takes the lowest place at which a library is mapped
    # for the library's place, which may be that of the former program. Then it finds no rules for unwinding. So a
    # record follows each exec. It maps something else over all of the process's memory, which removes what was there.
    # @api private
    class PerfStream
      HEAD_BYTES = 16
      # Type, misc, size.
      RECORD = "L<S<S<"
      RECORD_BYTES = 8
      MOST_BYTES = 65_535
      BLOCK = 1 << 20
      COMM = 3
      COMM_IS_EXEC = 1 << 13
      MMAP = 1
      OF_USER = 2
      # Of the name that perf takes for memory without a file.
      NOWHERE = "[heap]\0\0"
      # All addresses of programs on x86-64 and aarch64.
      EVERYWHERE = (1 << 52) - (1 << 16)
      private_constant :HEAD_BYTES, :RECORD, :RECORD_BYTES, :MOST_BYTES, :BLOCK, :COMM, :COMM_IS_EXEC, :MMAP, :OF_USER,
                       :NOWHERE, :EVERYWHERE

      # Copies the whole records of a file. A record that was cut off, or is damaged, ends the stream.
      #: (IO, IO) -> void
      def self.copy(file, out)
        out.write(file.read(HEAD_BYTES).to_s)
        rest = "".b
        while (block = file.read(BLOCK))
          rest = new(rest << block).copy_to(out) or break
        end
      end

      #: (String) -> void
      def initialize(bytes)
        @bytes = bytes
      end

      # @return [String, nil] the beginning of a record that is not complete; nil where a record has no possible size,
      #   so that none is found behind it
      #: (IO) -> String?
      def copy_to(out)
        from = at = size = 0
        while @bytes.bytesize - at >= RECORD_BYTES
          type, misc, size = @bytes.unpack("@#{at}#{RECORD}")
          break if size < RECORD_BYTES || at + size > @bytes.bytesize

          at += size
          next unless type == COMM && misc & COMM_IS_EXEC != 0

          out.write(@bytes.byteslice(from, at - from), cleared(@bytes.byteslice(at - size, size)))
          from = at
        end
        out.write(@bytes.byteslice(from, at - from))
        @bytes.byteslice(at..) unless @bytes.bytesize - at >= RECORD_BYTES && size < RECORD_BYTES
      end

      private

      # pid, tid, place, size, place in the file, name; then time and others as the exec has them. Nothing for a record
      # that is damaged.
      def cleared(comm)
        name = comm.byteslice(16..).to_s.index("\0") or return ""
        trailer = comm.byteslice((16 + (name + 8) / 8 * 8)..).to_s
        body = comm.byteslice(8, 8) + [0, EVERYWHERE, 0].pack("Q<3") + NOWHERE + trailer
        size = RECORD_BYTES + body.bytesize
        size > MOST_BYTES ? "" : [MMAP, OF_USER, size].pack(RECORD) + body
      end
    end
  end
end

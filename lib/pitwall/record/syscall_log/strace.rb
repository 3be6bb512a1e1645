# frozen_string_literal: true

require "pitwall/record/syscall_log/escapes"

module Pitwall
  module Record
    class SyscallLog
      # `strace` in its variants: -f, -y, -T, -t, -tt, -ttt, -r, calls that end on a later line, as standard error or -o has them. Which path a
      # descriptor stands for is followed where -y doesn't say it.
      # @api private
      class Strace
        include Refusals

        # What stands before a call: process; hour, minute, second, or seconds; the rest of a call that began earlier; its name.
        BEFORE = /(?:\[pid +(\d+)\] +|(\d+) +)?(?:(\d\d):(\d\d):(\d\d(?:\.\d+)?) +| *(\d+\.\d+) +)?(?:\(\+ *\d+\.\d+\) +)?(?:\[ *\d+\] +)?(?:\[[0-9a-f?]{8,}\] +)?/n.freeze
        HEAD = /\A#{BEFORE}(?:([a-z_]\w*)\(|<\.\.\. (\w+) resumed>)/n.freeze
        # Lines that strace writes of other things: signals, ends, attached processes, native stacks.
        OTHER = /\A(?:\[pid +\d+\] +|\d+ +)?(?:[\d:.]+ +)?(?:\(\+ *[\d.]+\) +)?(?:---|\+\+\+|strace: | > )|\A\s*\z/n.freeze
        # What goes before a call that began as others did: the fraction of its second, or nothing.
        AFTER_SECOND = /\G\.\d{6} [a-z_]\w*\(/n.freeze
        NAMED = /\G[a-z_]\w*\(/n.freeze
        # Beginnings kept: a process, and the second where there are times. tid; ns of the second, or nil; whether it is a time of day.
        BEGINNINGS = 1000
        Beginning = Struct.new(:tid, :ns, :of_day)
        ENDED = /\+\+\+ (?:exited|killed)/n.freeze
        UNFINISHED = " <unfinished ...>"
        # Which arguments of a call are a path (P), a descriptor (D) or something else (-); D before P is the folder of a relative path.
        PATH, AT, DESCRIPTOR, TWO, TWO_AT, TEXT_AT, MAP, NEW, NONE = *1..9
        SHAPES = {
          PATH => %w[open creat stat lstat stat64 lstat64 access readlink chdir mkdir rmdir unlink chmod chown lchown truncate truncate64 statfs statfs64 utime utimes execve
                     getxattr lgetxattr listxattr llistxattr setxattr lsetxattr removexattr lremovexattr mknod chroot swapon umount2 uselib acct inotify_add_watch],
          AT => %w[openat openat2 newfstatat fstatat64 statx readlinkat faccessat faccessat2 mkdirat unlinkat mknodat fchmodat fchmodat2 fchownat utimensat futimesat execveat name_to_handle_at],
          DESCRIPTOR => %w[read write close fstat fstat64 lseek _llseek pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 getdents getdents64 ioctl fcntl fcntl64 flock fsync fdatasync
                           ftruncate ftruncate64 fallocate fadvise64 fadvise64_64 readahead fgetxattr fsetxattr flistxattr fremovexattr fstatfs fstatfs64 fchmod fchown fchdir dup dup2 dup3
                           sendfile sendfile64 copy_file_range splice sync_file_range syncfs],
          TWO => %w[rename link mount pivot_root],
          TWO_AT => %w[renameat renameat2 linkat],
          TEXT_AT => %w[symlink symlinkat],
          MAP => %w[mmap mmap2],
          NEW => %w[clone clone3 fork vfork]
        }.flat_map { |shape, names| names.map { |name| [name, shape] } }.to_h.freeze
        # Where the flags stand: behind the path, or at the end.
        BEHIND = %w[open openat statx].freeze
        LAST = %w[newfstatat fstatat64 unlinkat linkat faccessat2].freeze
        CONSTANTS = { "O_WRONLY" => 1, "O_RDWR" => 2, "O_CREAT" => 0o100, "O_EXCL" => 0o200, "O_TRUNC" => 0o1000, "O_APPEND" => 0o2000, "O_NONBLOCK" => 0o4000,
                      "O_DIRECTORY" => 0o200000, "O_NOFOLLOW" => 0o400000, "O_CLOEXEC" => 0o2000000, "O_PATH" => 0o10000000,
                      "AT_SYMLINK_NOFOLLOW" => 0x100, "AT_REMOVEDIR" => 0x200, "AT_SYMLINK_FOLLOW" => 0x400, "AT_EMPTY_PATH" => 0x1000 }.freeze
        ERRORS = Errno.constants.to_h { |name| [name.to_s, Errno.const_get(name)] }.select { |_, error| error.is_a?(Class) && error < SystemCallError }
                      .transform_values { |error| error::Errno }.freeze
        # Calls that wait for their second line at a time.
        OPEN_CALLS = 4096
        DAY = 86_400_000_000_000
        # A time since 1970 is later than this, one since the line before is not.
        EPOCH = 100_000_000_000_000_000
        TENS = Array.new(10) { |places| 10**places }.freeze
        private_constant :BEFORE, :HEAD, :OTHER, :AFTER_SECOND, :NAMED, :BEGINNINGS, :Beginning, :ENDED, :UNFINISHED, :PATH, :AT, :DESCRIPTOR, :TWO, :TWO_AT, :TEXT_AT, :MAP, :NEW, :NONE, :SHAPES,
                         :BEHIND, :LAST, :CONSTANTS, :ERRORS, :OPEN_CALLS, :DAY, :EPOCH, :TENS

        #: (Array[String]) -> Integer
        def self.fitting(lines)
          lines.count do |line|
            (HEAD.match?(line) && line.match?(/\) += |<unfinished \.\.\.>\z|resumed>/n) && !line.match?(/\\0"|Err#|\(0x/n)) || line.match?(/\A(?:\d+ +)?(?:\+\+\+ |--- SIG)|\Astrace: /n)
          end
        end

        def initialize
          @descriptors = Descriptors.new
          @begun = {}
          @names = {}
          @flags = {}
          @beginnings = {}
          @durations = {}
          @others = 0
          @cut = 0
          @passed = 0
        end

        def lines(lines, &block)
          lines.each { |line| line(line, &block) }
        end

        # What began and was never seen to end: the process was killed, or the log was cut.
        def finish
          @lost = @begun.size
          @begun.clear
        end

        def remarks
          [("#{@others} call#{"s" if @others > 1} that are not about files are left out (strace -e trace=%file,%desc logs only those that are)" if @others.positive?),
           ("#{@lost} call#{"s" if @lost > 1} began and never ended: not counted" if @lost.to_i.positive?),
           ("#{@cut} path#{"s" if @cut > 1} were cut short by strace" if @cut.positive?)].compact
        end

        private

        def line(line, &block)
          return if begins_as_known(line, &block)

          head = HEAD.match(line) or return other(line)
          number = head[1] || head[2]
          @tid = number ? number.to_i : 0
          return resumed(line, head.end(0), &block) unless head.begin(7)

          learn(line, head)
          return began(line) if line.end_with?(UNFINISHED)

          call(line, head[7], head.end(7) + 1, head, &block)
        end

        # Most lines differ from one before in the fraction of a second and the call: no expression has to take those apart.
        # @return whether it was such a line
        def begins_as_known(line, &block)
          paren = line.index("(") or return false
          blank = line.rindex(" ", paren)
          from = blank ? blank + 1 : 0
          dot = line.index(".")
          if dot && dot < from
            known = @beginnings[line.byteslice(0, dot)]
            return false unless known && from == dot + 8 && AFTER_SECOND.match?(line, dot)
          else
            known = @beginnings[line.byteslice(0, from)]
            return false unless known && NAMED.match?(line, from)
          end
          @tid = known.tid
          return true.tap { began(line) } if line.end_with?(UNFINISHED)

          call(line, line.byteslice(from, paren - from), paren + 1, nil, known, &block)
          true
        end

        def learn(line, head)
          @beginnings.clear if @beginnings.size >= BEGINNINGS
          second = head[5] || head[6]
          return @beginnings[line.byteslice(0, head.begin(7))] = Beginning.new(@tid) unless second

          dot = line.index(".")
          return unless second.include?(".") && dot < head.begin(7)

          ns = head[5] ? of_day(head, head[5].to_i) : head[6].to_i * 1_000_000_000
          @beginnings[line.byteslice(0, dot)] = Beginning.new(@tid, ns, !head[5].nil?) if head[5] || ns >= EPOCH
        end

        # @param head [MatchData, nil] without, the beginning is known
        def call(line, name, from, head, known = nil)
          name = @names[name] ||= -name
          shape = SHAPES[name]
          return leave_out unless shape

          equals = result_place(line, from) or return refuse(line)
          closing = line.rindex(")", equals)
          @descriptors.at(@tid)
          call = Syscall.allocate
          call.name = name
          call.pid = call.tid = @tid
          call.cwd = @descriptors.cwd
          outcome(call, line, equals + 3)
          if known
            call.at_ns = since_first(known.ns + line.byteslice(line.index(".") + 1, 6).to_i * 1000, known.of_day) if known.ns
          elsif head.begin(5) || head.begin(6)
            call.at_ns = time(head)
          end
          arguments(call, shape, line, from, closing) ? yield(call) : nil
        end

        # Where " = " stands behind the last argument.
        def result_place(line, from)
          at = line.rindex(" = ")
          while at && at >= from
            before = at
            before -= 1 while line.getbyte(before) == 32
            return at if line.getbyte(before) == 41

            at = at.zero? ? nil : line.rindex(" = ", at - 1)
          end
        end

        # "5", "-1 ENOENT (No such file or directory)", "?", "0x7f…", and "<0.000012>" at the end.
        def outcome(call, line, from)
          first = line.getbyte(from)
          if first == 45 # -1
            ending = line.index(" ", from + 3)
            call.errno = ERRORS[line.byteslice(from + 3, ending ? ending - from - 3 : 24)] || ERRORS[line.byteslice(from + 3, 24).to_s[/\A[A-Z0-9_]*/n]]
          elsif first != 63 # ?
            text = line.byteslice(from, 20)
            call.result = first == 48 && text.getbyte(1) == 120 ? text.hex : text.to_i
            call.errno = 0
          end
          return unless line.getbyte(-1) == 62

          open = line.rindex("<")
          call.ns = duration(line.byteslice(open + 1, line.bytesize - open - 2)) if open && open > from && line.getbyte(open - 1) == 32
        end

        # Of most calls it is among a few hundred; nil for what is no number of seconds.
        def duration(text)
          @durations.clear if @durations.size > 5000
          @durations[text] ||= text.match?(/\A\d*\.\d*\z/n) ? nanoseconds(text) : nil
        end

        # "0.000123" → 123_000
        def nanoseconds(text)
          point = text.index(".") or return nil
          places = text.bytesize - point - 1
          text.to_i * 1_000_000_000 + text.byteslice(point + 1, 9).to_i * (places < 9 ? TENS[9 - places] : 1)
        end

        def time(head)
          return since_first(of_day(head, 0) + nanoseconds(head[5].include?(".") ? head[5] : "#{head[5]}.0"), true) if head[5]

          ns = nanoseconds(head[6])
          # -r: since the line before
          ns < EPOCH ? @passed += ns : since_first(ns, false)
        end

        def of_day(head, seconds) = (head[3].to_i * 3600 + head[4].to_i * 60 + seconds) * 1_000_000_000

        def since_first(ns, of_day)
          ns += DAY while of_day && @last && ns < @last - DAY / 2
          @zero ||= ns
          @last = ns
          ns - @zero
        end

        # @return whether the call is about a file
        def arguments(call, shape, line, from, closing)
          failed = call.errno&.nonzero?
          case shape
          when PATH
            path, behind = quoted(line, from)
            return leave_out if path.nil? && !line.match?(/\G(?:NULL|0x)/n, from)

            call.path = path && @descriptors.absolute(path)
            call.flags = flags(line, behind + 2, closing) if behind && call.name == "open"
            moved(call, failed)
          when AT
            base, place = folder(line, from)
            path, behind = quoted(line, place)
            call.path = path && @descriptors.absolute(path, base)
            call.flags = flags_of(call.name, line, behind, closing) if behind
          when DESCRIPTOR then descriptor(call, line, from, failed)
          when TWO
            path, behind = quoted(line, from)
            second, = behind ? quoted(line, behind + 2) : nil
            call.path = path && @descriptors.absolute(path)
            call.path2 = second && @descriptors.absolute(second)
          when TWO_AT
            base, place = folder(line, from)
            path, behind = quoted(line, place)
            call.path = path && @descriptors.absolute(path, base)
            if behind
              base, place = folder(line, behind + 2)
              second, = quoted(line, place)
              call.path2 = second && @descriptors.absolute(second, base)
            end
          when TEXT_AT
            call.path2, behind = quoted(line, from)
            base, place = call.name == "symlinkat" && behind ? folder(line, behind + 2) : [@descriptors.cwd, behind.to_i + 2]
            path, = behind ? quoted(line, place) : nil
            call.path = path && @descriptors.absolute(path, base)
          when MAP
            number = line.byteslice(from, closing - from)[/, (\d+)(?:<[^>]*>)?, [^,]*\z/n, 1] or return leave_out
            call.path = inline(line, line.rindex(", #{number}", closing) + 2, number.to_i) || @descriptors.path(number.to_i)
          when NEW then return made(call, line, from, closing)
          end
          opened(call, line) if call.errno == 0 && call.path && (shape == PATH || shape == AT)
          true
        end

        def moved(call, failed) = call.name == "chdir" && !failed && @descriptors.moved(call.path)

        def opened(call, line)
          case call.name
          when "openat", "open", "creat", "openat2"
            real = inline(line, line.rindex(" = ") + 3, call.result) if line.end_with?(">")
            @descriptors.opened(call.result, call.path, (real unless real == call.path))
          end
        end

        def descriptor(call, line, from, failed)
          number = line.byteslice(from, 10).to_i
          call.path = inline(line, from, number) || @descriptors.path(number)
          return if failed

          case call.name
          when "close" then @descriptors.closed(number)
          when "dup", "dup2", "dup3" then @descriptors.opened(call.result, call.path)
          when "fcntl", "fcntl64" then @descriptors.opened(call.result, call.path) if line.index("F_DUPFD", from)
          when "fchdir" then @descriptors.moved(call.path)
          end
        end

        # The path that -y prints behind a descriptor; it escapes < and >.
        def inline(line, from, number)
          at = from + (number < 10 ? 1 : number.to_s.size)
          return nil unless line.getbyte(at) == 60

          ending = line.index(">", at) or return nil
          return nil unless line.getbyte(at + 1) == 47 # a pipe, a socket

          path = line.byteslice(at + 1, ending - at - 1)
          inner = path.index("<") # </dev/pts/0<char 136:0>>
          path = path.byteslice(0, inner) if inner
          path = Escapes.undo(path) if path.include?("\\")
          @descriptors.opened_as(number, path)
        end

        # The folder that a descriptor names, and where the path behind it begins.
        def folder(line, from)
          comma = line.index(", ", from) or return [@descriptors.cwd, from]
          return [@descriptors.cwd, comma + 2] if comma == from + 8 # AT_FDCWD

          open = line.index("<", from)
          if open && open < comma
            ending = line.index(">", open) || comma
            path = line.byteslice(open + 1, ending - open - 1)
            path = Escapes.undo(path) if path.include?("\\")
            return [path.start_with?("/") ? path : nil, (line.index(", ", ending) || ending) + 2]
          end
          [line.getbyte(from) == 65 ? @descriptors.cwd : @descriptors.path(line.byteslice(from, 10).to_i), comma + 2]
        end

        # A quoted string and the place behind its closing quote; nil where there is none.
        def quoted(line, at)
          return nil unless line.getbyte(at) == 34

          ending = line.index('"', at + 1) or return nil
          escaped = line.getbyte(ending - 1) == 92 && ending > at + 1
          ending = Escapes.closing(line, at + 1) or return nil if escaped
          path = line.byteslice(at + 1, ending - at - 1)
          path = Escapes.undo(path) if path.include?("\\")
          if line.getbyte(ending + 1) == 46 # "…"...
            @cut += 1
            ending += 3
          end
          [path, ending + 1]
        end

        def flags_of(name, line, behind, closing)
          if BEHIND.include?(name) then flags(line, behind + 2, closing)
          elsif LAST.include?(name)
            from = line.rindex(", ", closing)
            from && from >= behind ? flags(line, from + 2, closing) : nil
          elsif name == "openat2"
            from = line.index("flags=", behind)
            from && flags(line, from + 6, closing)
          end
        end

        # "O_RDONLY|O_CLOEXEC" → a number; the same words come again and again.
        def flags(line, from, closing)
          ending = line.index(",", from)
          ending = closing if ending.nil? || ending > closing
          return nil if ending <= from

          words = line.byteslice(from, ending - from)
          @flags.clear if @flags.size > 1000
          @flags[words] ||= words.split("|").sum { |word| CONSTANTS.fetch(word) { word.start_with?("0x") ? word.hex : 0 } }
        end

        # Files are not made so, but threads and processes that share or inherit descriptors.
        def made(call, line, from, closing)
          shared = line.byteslice(from, closing - from).include?("CLONE_FILES")
          @descriptors.made(call.result, shared: shared) if call.result&.positive?
          false
        end

        def began(line)
          @begun.shift if @begun.size >= OPEN_CALLS
          @begun[@tid] = line.byteslice(0, line.bytesize - UNFINISHED.bytesize)
          nil
        end

        def resumed(line, from, &block)
          first = @begun.delete(@tid) or return refuse(line)
          rest = line.byteslice(from, line.bytesize)
          rest = rest.byteslice(1, rest.bytesize) if rest.start_with?(" ") && !first.end_with?(",")
          whole = first << rest
          whole.end_with?(UNFINISHED) ? refuse(line) : line(whole, &block)
        end

        def leave_out
          @others += 1
          nil
        end

        def other(line)
          return refuse(line) unless OTHER.match?(line)

          @descriptors.ended(line[/\d+/n].to_i) if ENDED.match?(line) && line.match?(/\A(?:\[pid +)?\d/n)
          nil
        end
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/syscall_log/escapes"
require "pitwall/record/syscall_log/strace_calls"

module Pitwall
  module Record
    class SyscallLog
      # `strace` with -f, -y, -T, -t, -tt, -ttt, -r or without, as it prints to standard error or to the file of -o. A
      # call may end on a later line. Paths of file descriptors are followed where -y does not print them.
      # @api private
      class Strace
        include Refusals
        include StraceCalls

        # What stands before a call. Groups: process (two forms), hour, minute, second, seconds since 1970.
        BEFORE = /(?:\[pid[ ]+(\d+)\][ ]+|(\d+)[ ]+)?
                  (?:(\d\d):(\d\d):(\d\d(?:\.\d+)?)[ ]+|[ ]*(\d+\.\d+)[ ]+)?
                  (?:\(\+[ ]*\d+\.\d+\)[ ]+)?(?:\[[ ]*\d+\][ ]+)?(?:\[[0-9a-f?]{8,}\][ ]+)?/nx.freeze
        # The beginning of a line. Further groups: name of the call, name of the call that is resumed.
        HEAD = /\A#{BEFORE}(?:([a-z_]\w*)\(|<\.\.\. (\w+) resumed>)/n.freeze
        # Lines of strace that are no calls: signals, ends of processes, attached processes, native stacks.
        OTHER = /\A(?:\[pid[ ]+\d+\][ ]+|\d+[ ]+)?(?:[\d:.]+[ ]+)?(?:\(\+[ ]*[\d.]+\)[ ]+)?
                 (?:---|\+\+\+|strace:[ ]|[ ]>[ ])|\A\s*\z/nx.freeze
        # The rest of a line behind a known prefix: with the fraction of a second, and without.
        AFTER_SECOND = /\G\.\d{6} [a-z_]\w*\(/n.freeze
        NAMED = /\G[a-z_]\w*\(/n.freeze
        # Number of line prefixes that are remembered.
        PREFIXES = 1000
        # What a prefix of a line says. ns: of the second, nil without times · of_day: whether ns is a time of day
        Prefix = Struct.new(:tid, :ns, :of_day)
        ENDED = /\+\+\+ (?:exited|killed)/n.freeze
        UNFINISHED = " <unfinished ...>"
        # Calls that may wait for their second line at a time.
        OPEN_CALLS = 4096
        DAY_NS = 86_400_000_000_000
        # Times since 1970 in ns are larger than this. Times since the line before (-r) are smaller.
        EPOCH_NS = 100_000_000_000_000_000
        TENS = Array.new(10) { |places| 10**places }.freeze
        private_constant :BEFORE, :HEAD, :OTHER, :AFTER_SECOND, :NAMED, :PREFIXES, :Prefix, :ENDED, :UNFINISHED,
                         :OPEN_CALLS, :DAY_NS, :EPOCH_NS, :TENS

        #: (Array[String]) -> Integer
        def self.fitting(lines)
          lines.count do |line|
            call = HEAD.match?(line) && line.match?(/\) += |<unfinished \.\.\.>\z|resumed>/n)
            (call && !line.match?(/\\0"|Err#|\(0x/n)) || line.match?(/\A(?:\d+ +)?(?:\+\+\+ |--- SIG)|\Astrace: /n)
          end
        end

        def initialize
          @descriptors = Descriptors.new
          @begun = {}
          @names = {}
          @flags = {}
          @prefixes = {}
          @durations = {}
          @others = 0
          @cut = 0
          @sum_of_gaps = 0
        end

        def lines(lines, &block)
          lines.each { |line| line(line, &block) }
        end

        # Counts calls that never ended, because the process was killed or the log was cut.
        def finish
          @lost = @begun.size
          @begun.clear
        end

        def remarks
          remarks = []
          if @others.positive?
            remarks << "#{@others} call#{"s" if @others > 1} that are not about files are left out " \
                       "(strace -e trace=%file,%desc logs only those that are)"
          end
          remarks << "#{@lost} call#{"s" if @lost > 1} began and never ended: not counted" if @lost.to_i.positive?
          remarks << "#{@cut} path#{"s" if @cut > 1} were cut short by strace" if @cut.positive?
          remarks
        end

        private

        def line(line, &block)
          return if known_prefix?(line, &block)

          head = HEAD.match(line) or return other(line)
          number = head[1] || head[2]
          @tid = number ? number.to_i : 0
          return resumed(line, head.end(0), &block) unless head.begin(7)

          remember_prefix(line, head)
          return began(line) if line.end_with?(UNFINISHED)

          call(line, head[7], head.end(7) + 1, head, &block)
        end

        # Reads a line whose prefix was seen before. Most lines differ from an earlier one only in the fraction of the
        # second and in the call, so that HEAD need not match them.
        # @return [Boolean] whether the line was read
        def known_prefix?(line, &block)
          paren = line.index("(") or return false
          blank = line.rindex(" ", paren)
          from = blank ? blank + 1 : 0
          dot = line.index(".")
          if dot && dot < from
            known = @prefixes[line.byteslice(0, dot)]
            return false unless known && from == dot + 8 && AFTER_SECOND.match?(line, dot)
          else
            known = @prefixes[line.byteslice(0, from)]
            return false unless known && NAMED.match?(line, from)
          end
          @tid = known.tid
          return true.tap { began(line) } if line.end_with?(UNFINISHED)

          call(line, line.byteslice(from, paren - from), paren + 1, nil, known, &block)
          true
        end

        def remember_prefix(line, head)
          @prefixes.clear if @prefixes.size >= PREFIXES
          second = head[5] || head[6]
          return @prefixes[line.byteslice(0, head.begin(7))] = Prefix.new(@tid) unless second

          dot = line.index(".")
          return unless second.include?(".") && dot < head.begin(7)

          ns = head[5] ? of_day(head, head[5].to_i) : head[6].to_i * 1_000_000_000
          @prefixes[line.byteslice(0, dot)] = Prefix.new(@tid, ns, !head[5].nil?) if head[5] || ns >= EPOCH_NS
        end

        # @param head [MatchData, nil] nil where the prefix is known
        # @param known [Prefix, nil]
        def call(line, name, from, head, known = nil)
          name = @names[name] ||= -name
          shape = SHAPES[name]
          return leave_out unless shape

          equals = result_place(line, from) or return refuse(line)
          closing = line.rindex(")", equals)
          @descriptors.switch_to(@tid)
          call = Syscall.allocate
          call.name = name
          call.pid = call.tid = @tid
          call.cwd = @descriptors.cwd
          outcome(call, line, equals + 3)
          if known&.ns
            microseconds = line.byteslice(line.index(".") + 1, 6).to_i
            call.at_ns = since_first(known.ns + microseconds * 1000, known.of_day)
          elsif head && (head.begin(5) || head.begin(6))
            call.at_ns = time(head)
          end
          arguments(call, shape, line, from, closing) ? yield(call) : nil
        end

        # The offset of the " = " behind the last argument.
        def result_place(line, from)
          at = line.rindex(" = ")
          while at && at >= from
            before = at
            before -= 1 while line.getbyte(before) == 32
            return at if line.getbyte(before) == 41

            at = at.zero? ? nil : line.rindex(" = ", at - 1)
          end
        end

        # Reads the result: "5", "-1 ENOENT (No such file or directory)", "?", "0x7f…", and "<0.000012>" at the end.
        def outcome(call, line, from)
          first = line.getbyte(from)
          if first == 45 # -1
            ending = line.index(" ", from + 3)
            call.errno = ERRORS[line.byteslice(from + 3, ending ? ending - from - 3 : 24)] ||
                         ERRORS[line.byteslice(from + 3, 24).to_s[/\A[A-Z0-9_]*/n]]
          elsif first != 63 # ?
            text = line.byteslice(from, 20)
            call.result = first == 48 && text.getbyte(1) == 120 ? text.hex : text.to_i
            call.errno = 0
          end
          return unless line.getbyte(-1) == 62

          open = line.rindex("<")
          return unless open && open > from && line.getbyte(open - 1) == 32

          call.ns = duration(line.byteslice(open + 1, line.bytesize - open - 2))
        end

        # Nanoseconds of "0.000012", nil where the text is no number of seconds. Most logs have a few hundred different
        # texts, so the results are kept.
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
          if head[5]
            seconds = head[5].include?(".") ? head[5] : "#{head[5]}.0"
            return since_first(of_day(head, 0) + nanoseconds(seconds), true)
          end

          ns = nanoseconds(head[6])
          # -r prints the time since the line before.
          ns < EPOCH_NS ? @sum_of_gaps += ns : since_first(ns, false)
        end

        def of_day(head, seconds) = (head[3].to_i * 3600 + head[4].to_i * 60 + seconds) * 1_000_000_000

        def since_first(ns, of_day)
          ns += DAY_NS while of_day && @last && ns < @last - DAY_NS / 2
          @zero ||= ns
          @last = ns
          ns - @zero
        end

        # Reads the arguments by the call's shape.
        # @return [Boolean, nil] whether the call is about a file
        def arguments(call, shape, line, from, closing)
          failed = call.errno&.nonzero?
          case shape
          when PATH
            path, behind = quoted(line, from)
            return leave_out if path.nil? && !line.match?(/\G(?:NULL|0x)/n, from)

            call.path = path && @descriptors.absolute(path)
            call.flags = flags(line, behind + 2, closing) if behind && call.name == "open"
            @descriptors.changed_directory(call.path) if call.name == "chdir" && !failed
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
            base, place = @descriptors.cwd, behind.to_i + 2
            base, place = folder(line, place) if call.name == "symlinkat" && behind
            path, = behind ? quoted(line, place) : nil
            call.path = path && @descriptors.absolute(path, base)
          when MAP
            number = line.byteslice(from, closing - from)[/, (\d+)(?:<[^>]*>)?, [^,]*\z/n, 1] or return leave_out
            place = line.rindex(", #{number}", closing) + 2
            call.path = inline(line, place, number.to_i) || @descriptors.path(number.to_i)
          when NEW then return created(call, line, from, closing)
          end
          opened(call, line) if call.errno == 0 && call.path && (shape == PATH || shape == AT)
          true
        end

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
          when "fchdir" then @descriptors.changed_directory(call.path)
          end
        end

        # The path that -y prints behind a descriptor, with < and > escaped; nil where the descriptor is no file.
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

        # The folder that a descriptor names, and the offset of the path behind the descriptor.
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

        # A quoted string and the offset behind its closing quote; nil where there is none.
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

        # "O_RDONLY|O_CLOEXEC" → a number. The same words come again and again, so the results are kept.
        def flags(line, from, closing)
          ending = line.index(",", from)
          ending = closing if ending.nil? || ending > closing
          return nil if ending <= from

          words = line.byteslice(from, ending - from)
          @flags.clear if @flags.size > 1000
          @flags[words] ||= words.split("|").sum do |word|
            CONSTANTS.fetch(word) { word.start_with?("0x") ? word.hex : 0 }
          end
        end

        # A new thread or process. The call is not about a file, but the child shares or inherits descriptors.
        def created(call, line, from, closing)
          shared = line.byteslice(from, closing - from).include?("CLONE_FILES")
          @descriptors.created(call.result, shared: shared) if call.result&.positive?
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

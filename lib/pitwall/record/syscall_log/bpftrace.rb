# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Output of bpftrace scripts and of the bcc tools opensnoop and statsnoop: columns below a heading, or a probe's
      # name and a path (`sys_enter_openat /a.rb`). A command and a process id may stand before the probe's name.
      # @api private
      class Bpftrace
        include Refusals

        # Groups: the column FD.
        HEADING = /\A(?:TIME(?:\([a-z]+\))?\s+)?(?:UID\s+)?P?PID\s+(?:TID\s+)?COMM\s+(FD\s+)?ERR\s+
                   (?:FLAGS\s+)?PATH\s*\z/nx.freeze
        # Groups: process, command, two numbers (FD and ERR, or ERR), path.
        ROW = /\A(?:\s*(?:\d\d:\d\d:\d\d|\d+\.\d+)\s+)?(?:\d+\s+)??(\d+)\s+(\S.*?)\s+(-?\d+)\s+(?:(\d+)\s+)?
               (?:0[0-7]+\s+)?(\S.*)\z/mnx.freeze
        # Groups: process, process, call's name, path.
        PROBE = /\A(?:@?\S*\s+)??(?:(\d+)\s+)?(?:\S+\s+)??(?:(\d+)\s+)?(?:tracepoint:syscalls:|syscalls:|t:syscalls:)?
                 (?:sys_enter_|sys_exit_)([a-z_][a-z0-9_]*)(?:[:,(\s]+(.*?)\)?)?\s*\z/mnx.freeze
        NOISE = /\A(?:Attaching \d+ probes?\.\.\.|Tracing .*|Lost \d+ events|\s*)\z/n.freeze
        private_constant :HEADING, :ROW, :PROBE, :NOISE

        #: (Array[String]) -> Integer
        def self.fitting(lines)
          if lines.first(20).any? { |line| HEADING.match?(line) }
            return lines.count { |line| ROW.match?(line) || HEADING.match?(line) }
          end

          lines.count { |line| line.include?("sys_e") && PROBE.match?(line) }
        end

        def initialize
          @lost = 0
          @names = {}
        end

        def lines(lines)
          lines.each do |line|
            if line.include?("sys_e") && (found = PROBE.match(line)) then yield(probe(found))
            elsif (heading = HEADING.match(line)) then @rows = heading[1] ? "open" : "stat"
            elsif @rows && (found = ROW.match(line)) then yield(row(found))
            elsif NOISE.match?(line) then @lost += line[/\ALost (\d+)/n, 1].to_i
            else refuse(line)
            end
          end
        end

        def finish; end

        def remarks
          @lost.zero? ? [] : ["the tracer lost #{@lost} events"]
        end

        private

        def probe(found)
          pid = (found[1] || found[2]).to_i
          path = found[4]
          path = path[1..-2] if path && path.size > 1 && path.start_with?('"') && path.end_with?('"')
          Syscall.new(name: @names[found[3]] ||= -found[3], path: (path unless path.to_s.empty?), pid: pid, tid: pid)
        end

        # opensnoop: PID COMM FD ERR PATH; statsnoop: PID COMM ERR PATH.
        def row(found)
          pid = found[1].to_i
          of_open = @rows == "open"
          errno = (of_open ? found[4] : found[3]).to_i
          descriptor = found[3].to_i if of_open
          path = found[4] && !of_open ? "#{found[4]} #{found[5]}" : found[5]
          result = descriptor || 0 if errno.zero?
          Syscall.new(name: @rows, path: path, pid: pid, tid: pid, errno: errno, result: result)
        end
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record/syscall_log/escapes"

module Pitwall
  module Record
    class SyscallLog
      # `dtruss` of macOS: columns that a heading names, then the call as in C, its result and errno. Paths of file
      # descriptors are followed.
      # @api private
      class Dtruss
        include Refusals

        # Groups: process, columns, call's name, arguments, result, errno.
        LINE = /\A\s*(?:(\d+)\/0x[0-9a-f]+:\s+)?((?:\d+\s+){0,3})([a-z_]\w*)\((.*)\)\s*=[ ]
                (-?\d+|0x[0-9A-F]+)[ ](?:Err\#)?(-?\d+)\s*\z/mnx.freeze
        HEADING = /\A\s*(?:PID\/THRD\s+)?((?:RELATIVE\s+|ELAPSD\s+|CPU\s+)*)SYSCALL\(args\)/n.freeze
        STRING = /\A"((?:[^"\\]|\\.)*?)(?:\\0)?"(?:, )?/mn.freeze
        DESCRIPTOR = /\A(?:0x([0-9A-Fa-f]+)|(\d+))/n.freeze
        # Names without their ending _nocancel. FOLDER: the first argument is the descriptor of a folder, then comes a
        # path.
        FOLDER = /\A(?:\w+at|fstatat64)\z/.freeze
        # The first argument is a descriptor; there is no path.
        OF_DESCRIPTOR = /\A(?:read|write|close|pread|pwrite|readv|writev|fstat|fstat64|fgetxattr|fsetxattr|flistxattr|
                            fcntl|ioctl|lseek|fstatfs|fstatfs64|fsync|fchdir|getdirentries|getdirentries64|
                            getdirentriesattr|getattrlistbulk|fgetattrlist|flock|ftruncate|fchmod|fchown|dup|
                            dup2)\z/x.freeze
        OPENS = /\A(?:open|openat|guarded_open_np|open_dprotected_np|open_extended)\z/.freeze
        MICROSECOND = 1000
        private_constant :LINE, :HEADING, :STRING, :DESCRIPTOR, :FOLDER, :OF_DESCRIPTOR, :OPENS, :MICROSECOND

        #: (Array[String]) -> Integer
        def self.fitting(lines)
          lines.count do |line|
            HEADING.match?(line) || (LINE.match?(line) && line.match?(/\\0"|Err#|0x[0-9A-F]|\) *\t/n))
          end
        end

        def initialize
          @descriptors = Descriptors.new
          @columns = []
          @names = {}
          @others = 0
        end

        def lines(lines)
          lines.each do |line|
            if (found = LINE.match(line)) then call = call(found) and yield(call)
            elsif (heading = HEADING.match(line)) then @columns = heading[1].split
            elsif !line.match?(/\A\s*\z|\Adtrace: /n) then refuse(line)
            end
          end
        end

        def finish; end

        def remarks
          @others.zero? ? [] : ["#{@others} calls that are not about files are left out"]
        end

        private

        def call(found)
          pid = found[1].to_i
          @descriptors.switch_to(pid)
          name = @names[found[3]] ||= -found[3]
          errno = found[6].to_i
          failed = found[5].start_with?("-")
          call = Syscall.new(name: name, pid: pid, tid: pid, errno: failed ? errno : 0, cwd: @descriptors.cwd,
                             result: (number(found[5]) unless failed), **times(found[2].split))
          about_a_file?(call, name.delete_suffix("_nocancel"), found[4]) ? call : (@others += 1) && nil
        end

        def number(text) = text.start_with?("0x") ? text.hex : text.to_i

        def times(columns)
          found = @columns.zip(columns).to_h
          { at_ns: found["RELATIVE"]&.to_i&.*(MICROSECOND), ns: found["ELAPSD"]&.to_i&.*(MICROSECOND) }.compact
        end

        def about_a_file?(call, name, arguments)
          if (string = STRING.match(arguments))
            call.path = @descriptors.absolute(Escapes.undo(string[1]))
          elsif FOLDER.match?(name) && (string = STRING.match(arguments.sub(/\A[^,]*, /n, "")))
            call.path = @descriptors.absolute(Escapes.undo(string[1]), folder(arguments))
          elsif OF_DESCRIPTOR.match?(name) then call.path = @descriptors.path(descriptor(arguments))
          else return false
          end
          follow(call, name, arguments) if call.errno.zero?
          true
        end

        # -2 is AT_FDCWD.
        def folder(arguments)
          return @descriptors.cwd if arguments.match?(/\A(?:0xFFFFFFFFFFFFFFFE|0xFFFFFFFE|-2)/n)

          @descriptors.path(descriptor(arguments))
        end

        def descriptor(arguments)
          found = DESCRIPTOR.match(arguments) or return -1
          found[1] ? found[1].hex : found[2].to_i
        end

        def follow(call, name, arguments)
          case name
          when OPENS then @descriptors.opened(call.result, call.path)
          when "close" then @descriptors.closed(descriptor(arguments))
          when "dup", "dup2" then @descriptors.opened(call.result, call.path)
          when "chdir", "fchdir" then @descriptors.changed_directory(call.path)
          end
        end
      end
    end
  end
end

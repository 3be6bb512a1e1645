# frozen_string_literal: true

require "pitwall/record/frame"

module Pitwall
  module Record
    module Import
      class PerfScript < Format
        # One frame of a stack of perf. name: a symbol, or "[unknown]" · path: the object ("[kernel]" for kernel
        # frames), or the Ruby file · line: the line of a Ruby method's definition, 0 where unknown · kind: of
        # {Record::Frame}
        Frame = Struct.new(:name, :path, :line, :kind)

        # Reads lines such as `    7f3a rb_ary_push+0x12 (/usr/lib/libruby.so)` into frames. Equal lines give one Frame.
        # @api private
        class Frames
          # The name of a frame whose symbol perf does not know.
          UNKNOWN = "[unknown]"
          # The path of all kernel frames.
          KERNEL = "[kernel]"
          # Machine code that a JIT compiler made and gave no name.
          COMPILED = "(compiled code)"
          # Distinct lines that are kept. Further ones are read each time they occur.
          KEPT = 1_000_000
          # Bytes of the longest name and path.
          TEXT = 4096

          # Groups: address, symbol with object.
          LINE = /\A\s*(\h+)(?: (.*))?\z/m.freeze
          OFFSET = /\+0x\h+\z/.freeze
          # Addresses of the kernel's half.
          KERNEL_ADDRESS = /\A(?:ffff|FFFF)\h{12}\z/.freeze
          # The kernel's image and its modules. Other objects in brackets belong to the process.
          KERNEL_OBJECT = %r{\A(?:\[(?!(?:vdso|vsyscall|vectors|heap|stack|unknown|uprobes|JIT)\b|anon).+\]
                            |(?:.*/)?vmlinu[xz](?:-.*)?|/.*\.ko(?:\.\w+)?|bpf_prog_.*)\z}x.freeze
          # Memory without a file that holds code: of a JIT compiler.
          ANONYMOUS = %r{\A(?://anon|\[anon.*\]|anon_inode:.*|/memfd:.*|/dev/zero.*)\z}.freeze
          # A map of symbols that a JIT compiler wrote: /tmp/perf-4711.map.
          MAP = %r{\A(?:/.*/perf-\d+\.map|\[JIT\].*|.*/jitted-\d+-\d+\.so)\z}.freeze
          # A Ruby method in such a map: "[JIT] Order#total@/app/order.rb:8", "Order#total (/app/order.rb:8)".
          METHOD = /\A(?:\[JIT\] |[yz]jit::)?(\S.*?)(?:@| \()([^@()]*[^@()\s]):(\d{1,9})\)?\z/m.freeze
          private_constant :KEPT, :TEXT, :LINE, :OFFSET, :KERNEL_ADDRESS, :KERNEL_OBJECT, :ANONYMOUS, :MAP, :METHOD

          def initialize
            @kept = {}
            @texts = {}
            @frames = {}
          end

          # @return [Array(String, Frame), nil] the address in hex, and the frame; nil where the line is no frame. The
          #   path of an inlined function is nil: the function around it, which follows, has the path
          #: (String) -> [String, Frame]?
          def read(line)
            found = @kept[line]
            return found if found

            found = parse(line)
            @kept[-line] = found if found && @kept.size < KEPT
            found
          end

          # The frame of an inlined function, once its object is known.
          #: (Frame, String) -> Frame
          def inlined_in(frame, path) = frame(frame.name, path, 0, frame.kind)

          # A frame for samples without a stack.
          #: () -> Frame
          def none = frame(UNKNOWN, "", 0, Record::Frame::NATIVE)

          private

          def parse(line)
            match = LINE.match(line) or return
            address, rest = match[1], match[2].to_s
            symbol, object = split(rest.rstrip)
            symbol = symbol.sub(OFFSET, "")
            symbol = "0x#{address}" if symbol.empty?
            [address, made(address, symbol, object)]
          end

          # "f(int) (/tmp/a (deleted))" → "f(int)", "/tmp/a (deleted)". Without an object: the symbol, "".
          def split(text)
            at = opening(text) if text.end_with?(")")
            return [text, ""] unless at

            [text.byteslice(0, at).rstrip, text.byteslice(at + 1, text.bytesize - at - 2)]
          end

          # Where the group of parentheses at the end begins. It stands at the beginning or behind a space. The path of
          # an object may have a parenthesis without its partner: then it begins at the last "(/" or "([".
          def opening(text)
            depth = 0
            at = text.bytesize
            while (at -= 1) >= 0
              case text.getbyte(at)
              when 41 then depth += 1
              when 40
                next unless (depth -= 1).zero?

                return at if at.zero? || text.getbyte(at - 1) == 32
                break
              end
            end
            found = text.rindex(%r{(?:\A| )\([/\[]}) or return
            text.getbyte(found) == 40 ? found : found + 1
          end

          def made(address, symbol, object)
            object = object.sub(OFFSET, "").delete_suffix(" (deleted)")
            return frame(symbol, nil, 0, Record::Frame::NATIVE) if object == "inlined"
            return frame(symbol, KERNEL, 0, Record::Frame::NATIVE) if kernel?(address, object)
            return frame(symbol, "", 0, Record::Frame::NATIVE) if object == UNKNOWN
            return compiled(symbol) if MAP.match?(object) || ANONYMOUS.match?(object)

            frame(symbol, object, 0, Record::Frame::NATIVE)
          end

          def kernel?(address, object)
            KERNEL_OBJECT.match?(object) || (KERNEL_ADDRESS.match?(address) && [UNKNOWN, ""].include?(object))
          end

          # Code of a JIT compiler: a Ruby method where the map names one.
          def compiled(symbol)
            return frame(COMPILED, "", 0, Record::Frame::NATIVE) if symbol == UNKNOWN

            found = METHOD.match(symbol)
            return frame(found[1], found[2], found[3].to_i, Record::Frame::RUBY) if found

            frame(symbol, "[JIT]", 0, Record::Frame::NATIVE)
          end

          def frame(name, path, line, kind)
            key = [name, path, line, kind]
            @frames[key] ||= Frame.new(text(name), path && text(path), line, kind).freeze
          end

          def text(whole) = @texts[whole] ||= -whole.byteslice(0, TEXT).scrub("?")
        end
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # The same name is looked up in one folder after another.
      #
      # The pattern's rule says which paths belong together:
      # - "ends": each path ends with the name of the previous path
      # - "name": the last component is the same
      # - "stem": the last component without extension is the same. `require "a"` looks up "a" with each extension
      class Scan < Stage
        SLASH = 47
        private_constant :SLASH

        # The last component of a path: "/a/b/" → "b", "/" → "/". Like File.basename, which raises for some bytes.
        #: (String) -> String
        def self.name(path)
          slash = path.rindex("/") or return path
          return path[slash + 1..] if slash + 1 < path.size

          stripped = path.sub(%r{/+\z}, "")
          stripped.empty? ? "/" : name(stripped)
        end

        # A name without its extension: "a.rb" → "a", ".rb" → ".rb"
        #: (String) -> String
        def self.stem(name)
          dot = name.rindex(".")
          dot && dot.positive? ? name[0, dot] : name
        end

        def initialize(*)
          super
          @takes = @accepts[0]
          @rule = @program.pattern.rule
          @least = @program.pattern.least
          @held = []
        end

        # Takes the thread's next call.
        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          path = call.path if @takes[kind]
          return other(call, kind) unless path

          if @path
            return absorb(call, path, kind) if path != @path && same?(path)

            flush
          end
          hold
          @count = 0
          @ns = @nodes = nil
          absorb(call, path, kind)
        end

        # Ends the log.
        #: () -> void
        def finish = @path && flush

        private

        def other(call, kind)
          flush if @path
          @chain.route(call, kind, @next)
        end

        def same?(path)
          case @rule
          when "ends" then path.end_with?(@name)
          when "name"
            return Scan.name(path) == @name if path.getbyte(-1) == SLASH || @name.getbyte(-1) == SLASH

            rest = path.bytesize - @name.bytesize
            path.end_with?(@name) && (rest.zero? || path.getbyte(rest - 1) == SLASH)
          else Scan.stem(Scan.name(path)) == @name
          end
        end

        def absorb(call, path, kind)
          first = @count.zero?
          @name = named(path) if first || (@rule == "ends" && path.getbyte(path.bytesize - @name.bytesize - 1) != SLASH)
          @path = path
          @count += 1
          @held.push(call, kind) if @count < @least
          note(call) if call.ns || call.node
        end

        def named(path) = @rule == "stem" ? Scan.stem(Scan.name(path)) : Scan.name(path)

        def flush
          release
          path = @path
          @path = nil
          settle(path)
        end
      end
    end
  end
end

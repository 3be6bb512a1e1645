# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # The same name looked for in one folder after another.
      #
      # rule: "ends" (each path ends with the name of the one before), "name" (its name is the same), "stem" (its name
      # without extension is: what is required without one is looked for with each).
      class Scan < Stage
        SLASH = 47
        private_constant :SLASH

        # The last component, as File.basename has it (which raises for some bytes): "/a/b/" → "b", "/" → "/".
        #: (String) -> String
        def self.name(path)
          slash = path.rindex("/") or return path
          return path[slash + 1..] if slash + 1 < path.size

          stripped = path.sub(%r{/+\z}, "")
          stripped.empty? ? "/" : name(stripped)
        end

        # "a.rb" → "a", ".rb" → ".rb"
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

        # The log has ended.
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

            path.end_with?(@name) && (path.bytesize == @name.bytesize || path.getbyte(path.bytesize - @name.bytesize - 1) == SLASH)
          else Scan.stem(Scan.name(path)) == @name
          end
        end

        def absorb(call, path, kind)
          @name = named(path) if @count.zero? || (@rule == "ends" && path.getbyte(path.bytesize - @name.bytesize - 1) != SLASH)
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

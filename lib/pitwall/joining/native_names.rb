# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/symbols"

module Pitwall
  module Joining
    # Makes native frames of perf's. They have the names and paths that Pitwall's own native frames have, so that both
    # are the same methods. A function without a symbol is called by its object and address ("libruby.so+0x24e160").
    # @api private
    class NativeNames
      # name, path: as in FRAM · role: :function, :kernel, :interpreter (its loop, below which native frames belong to
      # the Ruby method that runs), :compiled (code of a JIT compiler), :lost (unwinding failed), :own (Pitwall)
      Named = Struct.new(:name, :path, :role)

      UNKNOWN = "[unknown]"
      KERNEL = "[kernel]"
      COMPILED = "(compiled code)"
      LOOP = /\Avm_exec_core(?:\.|\z)/.freeze
      # The extension: handlers that sample, and threads of its own.
      OWN = %r{/pitwall\.so\z}.freeze
      # Memory without code.
      MEMORY = /\A\[(?:heap|stack|anon)/.freeze
      private_constant :UNKNOWN, :KERNEL, :LOOP, :OWN, :MEMORY

      # @param interpreters [Array<[path, address…]>] where loops are, as HEAD says
      # @param paths [Array<String>] objects as recordings name them
      #: (Array[Array[String | Integer]], Array[String]) -> void
      def initialize(interpreters, paths)
        @loops = Hash.new { |known, path| known[path] = [] }
        interpreters.each { |path, *addresses| @loops[real(path)].concat(addresses) }
        @paths = paths.to_h { |path| [real(path), path] }
        @objects = {}
        @named = {}.compare_by_identity
        @shared = {}
        @unnamed = {}
      end

      # @param frame [Record::Import::PerfScript::Frame]
      # @param address [String] in hexadecimal: of kernel functions in memory, of others in the object's file
      #: (untyped, String) -> Named
      def call(frame, address)
        (@named[frame] ||= {})[address] ||= named(frame, address)
      end

      # Objects that have functions without a symbol.
      # @return [Hash{String => String}] path → build id
      #: () -> Hash[String, String]
      def objects
        @unnamed.keys.to_h { |path| [@paths.fetch(path, path), Symbols.build_id(path)] }
      end

      private

      def named(frame, address)
        path = frame.path.to_s
        return shared(frame.name, KERNEL, :kernel) if path == KERNEL
        return shared(COMPILED, "", :compiled) if jit?(frame)
        return shared(UNKNOWN, "", :lost) if path.empty? || MEMORY.match?(path)

        function(frame.name, path, address.hex)
      end

      def jit?(frame)
        frame.kind == Record::Frame::RUBY || frame.name == COMPILED || frame.path == "[JIT]"
      end

      def function(symbol, path, offset)
        start = start_of(path, offset)
        known = @paths.fetch(path, path)
        return shared(symbol, known, :own) if OWN.match?(path)
        return shared("vm_exec_core", known, :interpreter) if LOOP.match?(symbol) || @loops[path].include?(start)
        return shared(symbol.sub(/@@?[\w.]+\z/, ""), known, :function) unless symbol == UNKNOWN
        return shared(UNKNOWN, known, :function) unless start

        @unnamed[path] = true
        shared(format("%s+0x%x", File.basename(known), start), known, :function)
      end

      def shared(name, path, role) = @shared[[name, path, role]] ||= Named.new(name, path, role).freeze

      # The address of the function at an offset in a file.
      def start_of(path, offset)
        starts = @objects[path] ||= Symbols::FunctionStarts.read(path)
        address = starts.address(offset)
        address && starts.start(address)
      end

      def real(path)
        File.realpath(path)
      rescue SystemCallError
        path
      end
    end
  end
end

# frozen_string_literal: true

require "open3"
require "pitwall/symbols/rust_name"

module Pitwall
  module Symbols
    # Names of C++ and Rust functions as a programmer wrote them. Rust's older names are read here. The others are
    # given to c++filt (binutils) in one batch: in a process of its own, because names in a recording may be made to
    # exhaust a demangler. Where that program is missing, names stay as they were recorded.
    #
    # Parameters are left out, as perf leaves them out: overloaded functions have one name.
    class Demangling
      MANGLED = /\A_?_(?:Z|R)[\w$.]+\z/.freeze
      # "mycrate[3c1c0]::foo": the hash of a crate's name and version.
      CRATE_HASH = /(?<=\w)\[\h{1,16}\]/.freeze
      # Longer names stay as they are.
      LONGEST = 4096
      COMMAND = %w[c++filt --no-params].freeze
      # The program's CPU seconds and bytes of memory, and how long it is waited for.
      CPU = 10
      MEMORY = 1 << 30
      PATIENCE = 20
      private_constant :MANGLED, :CRATE_HASH, :LONGEST, :COMMAND, :CPU, :MEMORY, :PATIENCE

      #: (String) -> bool
      def self.mangled?(name) = name.start_with?("_") && name.size <= LONGEST && name.match?(MANGLED)

      # Is there a program for names of C++ and of Rust's newer mangling?
      #: () -> bool
      def self.available? = new.call(["_ZN1a1bEv"]) == { "_ZN1a1bEv" => "a::b" }

      # @param command [Array<String>] reads names from standard input, one a line
      #: (?command: Array[String]) -> void
      def initialize(command: COMMAND)
        @command = command
      end

      # The names that could be demangled. No program is started if there is none to give to it.
      #: (Array[String]) -> Hash[String, String]
      def call(names)
        mangled = names.uniq.select { |name| Demangling.mangled?(name) }
        rust = mangled.to_h { |name| [name, RustName.demangle(name)] }.compact
        rest = mangled - rust.keys
        rest.empty? ? rust : rust.merge(filtered(rest))
      end

      private

      def filtered(names)
        output = run(names.join("\n")) or return {}
        lines = output.force_encoding(Encoding::UTF_8).scrub("?").split("\n", -1)
        return {} unless lines.size >= names.size

        found = names.zip(lines).reject { |name, line| line.empty? || line == name || line.match?(/[[:cntrl:]]/) }
        found.to_h { |name, line| [name, name.start_with?("_R") ? line.gsub(CRATE_HASH, "") : line] }
      end

      def run(input)
        Open3.popen2(*@command, err: File::NULL, rlimit_cpu: CPU, rlimit_as: MEMORY) do |to, from, child|
          writer = Thread.new { write(to, input) }
          reader = Thread.new { from.read }
          unless reader.join(PATIENCE)
            Process.kill(:KILL, child.pid)
            writer.kill
          end
          reader.value if child.value.success?
        end
      rescue SystemCallError
        nil
      end

      def write(to, input)
        to.puts(input)
        to.close
      rescue SystemCallError
        nil # the program has ended
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/record"

module Pitwall
  # Names of native functions, found after the recording: from files that have the symbols, on any machine.
  #
  # Reading order: symbols/resolution.rb (what is looked for), symbols/library.rb (folders with objects and debug
  # files), symbols/elf_file.rb (one such file), symbols/demangling.rb (names as a programmer wrote them).
  module Symbols
    autoload :Demangling, "pitwall/symbols/demangling"
    autoload :ElfFile, "pitwall/symbols/elf_file"
    autoload :Library, "pitwall/symbols/library"
    autoload :Resolution, "pitwall/symbols/resolution"
    autoload :RustName, "pitwall/symbols/rust_name"
  end
end

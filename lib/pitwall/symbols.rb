# frozen_string_literal: true

require "pitwall/record"

module Pitwall
  # Names of native functions, found after the recording: from files that have the symbols, on any machine.
  #
  # Reading order: symbols/resolution.rb (what is looked for), symbols/library.rb (folders with objects and debug
  # files), symbols/elf_file.rb (one such file), symbols/function_starts.rb (functions without names),
  # symbols/demangling.rb (names as a programmer wrote them).
  module Symbols
    autoload :Demangling, "pitwall/symbols/demangling"
    autoload :ElfFile, "pitwall/symbols/elf_file"
    autoload :FunctionStarts, "pitwall/symbols/function_starts"
    autoload :Library, "pitwall/symbols/library"
    autoload :Resolution, "pitwall/symbols/resolution"
    autoload :RustName, "pitwall/symbols/rust_name"

    # The build id of an object in hexadecimal; "" where there is none, or no such object.
    #: (String) -> String
    def self.build_id(path)
      ElfFile.open(path, &:build_id)
    rescue SystemCallError, ElfFile::Malformed
      ""
    end
  end
end

# frozen_string_literal: true

require "pitwall/show/syscalls/words"

module Pitwall
  module Show
    # The superclass of the views of system calls.
    class SyscallsView
      # @param name [String] name of the log or of the recorded program
      # @param format [String] the log's format, e.g. "strace"; or "recording"
      # @param file [String] the file as the user typed it, for hints
      # @param hints [Views::Hints] options that notes suggest
      # @param limit [Integer, nil] rows of each table
      # @param base [String, nil] folder; paths below it are shown relative to it
      #: (report: Analyse::SyscallReport, name: String, format: String, hints: untyped, ?file: String,
      #:  ?warnings: Array[Record::Warning], ?limit: Integer?, ?base: String?) -> void
      def initialize(report:, name:, format:, hints:, file: "", warnings: [], limit: nil, base: nil)
        @report = report
        @name = name
        @format = format
        @hints = hints
        @file = file
        @warnings = warnings
        @limit = limit
        @base = base
      end

      private

      # The name and the sums.
      def heading = SyscallsWords.title(@report, @name, @format)
    end
    private_constant :SyscallsView
  end
end

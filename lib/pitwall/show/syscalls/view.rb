# frozen_string_literal: true

require "pitwall/show/syscalls/words"

module Pitwall
  module Show
    # What every view of system calls is made of.
    class SyscallsView
      # @param name [String] of the log or the recorded program; format: the log's, or "recording"; file: what to type for it
      # @param limit [Integer, nil] rows of each table
      # @param base [String, nil] the folder below which paths are shown relative
      #: (report: Analyse::SyscallReport, name: String, format: String, ?file: String, ?warnings: Array[Record::Warning], ?limit: Integer?, ?base: String?) -> void
      def initialize(report:, name:, format:, file: "", warnings: [], limit: nil, base: nil)
        @report = report
        @name = name
        @format = format
        @file = file
        @warnings = warnings
        @limit = limit
        @base = base
      end

      private

      # The name, and what the report adds up to.
      def heading = SyscallsWords.title(@report, @name, @format)
    end
    private_constant :SyscallsView
  end
end

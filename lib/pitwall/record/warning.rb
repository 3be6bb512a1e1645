# frozen_string_literal: true

module Pitwall
  module Record
    # Something that users of the recording should know. Data, not text for a terminal.
    #
    # code:    :truncated, :unstopped, :recording, :unwritten, :replaced, :skipped, :headless, :lost,
    #          :syscalls, :unmatched, :symbols
    # message: one line
    # offset:  in the file, or nil
    # bytes:   how many were skipped, or nil
    Warning = Struct.new(:code, :message, :offset, :bytes, keyword_init: true) do
      #: () -> String
      def to_s = message

      #: () -> Hash[String, untyped]
      def to_h = super.compact.transform_keys(&:to_s).merge("code" => code.to_s)
    end
  end
end

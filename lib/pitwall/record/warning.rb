# frozen_string_literal: true

module Pitwall
  module Record
    # Something a reader of the recording should know; data, not text for a terminal.
    # code: :truncated, :unstopped, :recording, :unwritten, :replaced, :skipped, :headless, :lost, :unmatched; message: one line; offset: where in the file, or nil;
    # bytes: how many were skipped, or nil.
    Warning = Struct.new(:code, :message, :offset, :bytes, keyword_init: true) do
      #: () -> String
      def to_s = message

      #: () -> Hash[String, untyped]
      def to_h = super.compact.transform_keys(&:to_s).merge("code" => code.to_s)
    end
  end
end

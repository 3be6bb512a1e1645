# frozen_string_literal: true

require "pitwall/show/page/page"
require "pitwall/show/syscalls/page_part"

module Pitwall
  module Show
    # The page of a log of system calls. System calls of a recording are a view in the recording's page (RecordingPage).
    class SyscallsPage
      # @param base [String, nil] folder; paths below it are shown relative to it
      #: (SyscallsPart, ?base: String?) -> void
      def initialize(part, base: nil)
        @part = part
        @base = base
      end

      # The page's HTML.
      #: () -> String
      def to_s = Page.new(data).to_s

      # The page's data.
      # @api private
      #: () -> PageData
      def data
        name, *facts = @part.title
        data = PageData.new(title: "#{name} · Pitwall")
        data.object = { "schema" => "pitwall/page-1", "kind" => "syscalls", "title" => name, "facts" => facts,
                        "base" => @base, "syscalls" => @part.object(data), "version" => VERSION }
        data
      end
    end
  end
end

# frozen_string_literal: true

require "cgi/escape"
require "digest"
require "pitwall/show/page/data"

module Pitwall
  module Show
    # A report as one HTML file that needs nothing else: style, program and data stand in it. Its source is the folder
    # page/ of the repository; what stands beside this file in page/ is built of it (doc/page.md).
    #
    # Nothing of a recording becomes markup: the title is escaped, all else is in the data, whose Base64 has no
    # character that HTML knows, and the program writes text nodes only. Should that fail, the policy lets no other
    # script run.
    class Page
      # Parts of the program, as `require` would find them.
      PARTS = { script: "page.js", style: "page.css" }.transform_values { |name| File.expand_path(name, __dir__) }
                                                      .freeze
      NO_SCRIPT = "This report draws itself: allow scripts for this file. It loads nothing and sends nothing."
      private_constant :PARTS, :NO_SCRIPT

      # The policy of a page, as a header says it.
      # @param parts [Hash{Symbol => String}] script and style
      #: (?Hash[Symbol, String]) -> String
      def self.policy(parts = self.parts)
        "default-src 'none'; script-src '#{digest(parts[:script])}'; style-src '#{digest(parts[:style])}'; " \
          "img-src data:; base-uri 'none'; form-action 'none'"
      end

      # @api private
      #: () -> Hash[Symbol, String]
      def self.parts = @parts ||= PARTS.transform_values { |path| File.read(path, encoding: "UTF-8").freeze }

      def self.digest(text) = "sha256-#{[Digest::SHA256.digest(text)].pack("m0")}"
      private_class_method :digest

      # @param data [PageData]
      #: (PageData) -> void
      def initialize(data)
        @data = data
      end

      #: () -> String
      def to_s
        parts = Page.parts
        <<~HTML
          <!doctype html>
          <html lang="en">
          <head>
          <meta charset="utf-8">
          <meta http-equiv="Content-Security-Policy" content="#{Page.policy(parts)}">
          <meta name="viewport" content="width=device-width, initial-scale=1">
          <meta name="referrer" content="no-referrer">
          <meta name="color-scheme" content="light dark">
          <title>#{CGI.escapeHTML(Text.safe(@data.title))}</title>
          <link rel="icon" href="data:,">
          <style>#{parts[:style]}</style>
          </head>
          <body>
          <noscript>#{NO_SCRIPT}</noscript>
          <div id="app"></div>
          <script type="application/octet-stream" id="data">#{@data}</script>
          <script>#{parts[:script]}</script>
          </body>
          </html>
        HTML
      end
    end
  end
end

# frozen_string_literal: true

require "uri"
require "pitwall/errors"

module Pitwall
  module History
    # Where a history is kept: a SQLite file, or a PostgreSQL database by URL.
    class Address
      SCHEMES = %w[postgres postgresql].freeze
      SECRET = /\A(?:password|passfile|sslpassword|sslkey)\z/i.freeze
      private_constant :SCHEMES, :SECRET

      # @raise [UsageError] neither a path nor a URL of PostgreSQL; the text is not in the message, it may hold a
      #   password
      #: (String) -> Address
      def self.parse(text)
        raise UsageError, "the history's place is empty: name a file or postgres://HOST/DATABASE" if text.empty?

        scheme = text[%r{\A([a-z][a-z0-9+.-]*)://}i, 1]&.downcase
        return new(path: text) if scheme.nil?
        return new(path: text.sub(%r{\A[a-z]+://}i, "")) if scheme == "sqlite"
        unless SCHEMES.include?(scheme)
          raise UsageError, "a history is in a file or in postgres://HOST/DATABASE, not in #{scheme}://…"
        end

        new(uri: URI.parse(text))
      rescue URI::Error
        raise UsageError, "the history's URL can't be read: postgres://USER:PASSWORD@HOST/DATABASE; " \
                          "write special characters of the password as %XX"
      end

      # @api private
      def initialize(path: nil, uri: nil)
        @path = path
        @uri = uri
      end

      # The file; nil of a URL.
      # @return [String, nil]
      attr_reader :path

      #: () -> bool
      def sqlite? = @uri.nil?

      # The whole URL, with its password: for the connection only.
      #: () -> String
      def url = @uri.to_s

      # The place without secrets, for people: "postgres://ci@db.example/history".
      #: () -> String
      def to_s
        return @path if sqlite?

        shown = @uri.dup
        shown.password = nil if shown.password
        pairs = URI.decode_www_form(@uri.query.to_s).reject { |name, _| name.match?(SECRET) }
        shown.query = pairs.empty? ? nil : URI.encode_www_form(pairs)
        shown.to_s
      end

      # Debuggers and errors print objects: no secrets here either.
      #: () -> String
      def inspect = "#<#{self.class} #{self}>"

      # A driver's message without the secrets of the URL, as one line.
      #: (String) -> String
      def clean(message)
        secrets.inject(message.to_s.strip.gsub(/\s*\n\s*/, "; ")) { |text, secret| text.gsub(secret, "…") }
      end

      private

      def secrets
        return [] if sqlite?

        pairs = URI.decode_www_form(@uri.query.to_s).select { |name, _| name.match?(SECRET) }
        raw = [@uri.password, *pairs.map(&:last)].compact.reject(&:empty?)
        (raw + raw.map { |text| URI.decode_www_form_component(text) }).uniq.sort_by { |text| -text.size }
      rescue ArgumentError
        raw
      end
    end
  end
end

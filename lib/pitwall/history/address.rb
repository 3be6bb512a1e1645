# frozen_string_literal: true

require "uri"
require "pitwall/errors"

module Pitwall
  module History
    # Where a history is kept: a SQLite file, or a PostgreSQL database by URL.
    class Address
      SCHEMES = %w[postgres postgresql].freeze
      SECRET = /\A(?:password|passfile|sslpassword|sslkey)\z/i.freeze
      # What stands in a URL or in libpq's settings, and hardly in the name of a file.
      NO_PATH = %r{://|\A["']|\Apostgres(?:ql)?:|\bpassword\s*=}i.freeze
      private_constant :SCHEMES, :SECRET, :NO_PATH

      # @raise [UsageError] neither a path nor a URL of PostgreSQL; the text is not in the message, it may hold a
      #   password
      #: (String) -> Address
      def self.parse(text)
        raise UsageError, "the history's place is no text in #{text.encoding}" unless text.valid_encoding?

        text = text.strip
        scheme = text[%r{\A([a-z][a-z0-9+.-]*)://}i, 1]&.downcase
        return new(path: path(text)) if scheme.nil?
        return new(path: path(text.sub(%r{\A[a-z]+://}i, ""))) if scheme == "sqlite"
        unless SCHEMES.include?(scheme)
          raise UsageError, "a history is in a file or in postgres://HOST/DATABASE, not in #{scheme}://…"
        end

        new(uri: uri(text))
      end

      class << self
        private

        def path(text)
          raise UsageError, "the history's place is empty: name a file or postgres://HOST/DATABASE" if text.empty?
          if text.match?(NO_PATH)
            raise UsageError, "the history's place is no file's name: name a file, or " \
                              "postgres://USER:PASSWORD@HOST/DATABASE, without quotes"
          end
          raise UsageError, "a history in memory keeps nothing: name a file" if text.end_with?(":memory:")

          text
        end

        # An @ that is not before the host is a part of a password: "postgres://u:2024#x@h/d" has the port 2024.
        def uri(text)
          uri = URI.parse(text)
          fine = [uri.path, uri.query, uri.fragment].none? { |part| part.to_s.include?("@") } &&
                 [uri.password, uri.query].all? { |part| URI.decode_www_form_component(part.to_s).valid_encoding? }
          fine ? uri : raise(URI::InvalidURIError)
        rescue URI::Error, ArgumentError
          raise UsageError.new("the history's URL can't be read: postgres://USER:PASSWORD@HOST/DATABASE; " \
                               "write special characters of the password as %XX"), cause: nil
        end
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

      # The same for every folder in which the command runs: for the spool.
      #: () -> String
      def key = sqlite? ? File.absolute_path(@path) : to_s

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

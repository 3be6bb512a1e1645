# frozen_string_literal: true

require "pitwall/application"

module Pitwall
  module Analyse
    # Tells the application's code from other code. The application's code is every Ruby file that belongs to no gem, no
    # Ruby installation and not to Pitwall (see Application).
    class Origin
      # Evaluated code counts as code of its file: "(eval at /srv/app/a.rb:3)" is in /srv/app/a.rb.
      EVAL = /\A\(eval at (.*):\d+\)\z/m.freeze
      # Prefix of paths that Redaction hashed because they are outside the working directory.
      REDACTED = "(outside)/"
      private_constant :EVAL, :REDACTED

      # @param base [String, nil] the application's folder. Its own path may look like a gem's: "/srv/gems/shop-1.2"
      #: (?base: String?) -> void
      def initialize(base: nil)
        @base = base && "#{base.chomp("/")}/"
        @paths = {}
      end

      # Whether a method is the application's code.
      #: (MethodInfo | Record::Frame) -> bool
      def mine?(method) = method.kind.zero? && path?(method.path)

      # Whether a path is of the application's code: "/srv/app/lib/a.rb" → true, "/usr/lib/ruby/3.4.0/set.rb" → false
      #: (String) -> bool
      def path?(path) = @paths.fetch(path) { @paths[path] = decide(path) }

      private

      def decide(path)
        inner = path[EVAL, 1]
        return decide(inner) if inner
        return false if path.start_with?(REDACTED)

        Application.path?(path, base: @base)
      end
    end
  end
end

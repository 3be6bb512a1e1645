# frozen_string_literal: true

require "pitwall/application"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    # Tells whose code a frame is: the application's, a gem's, or Ruby's own. The application's code is every Ruby file
    # that belongs to no gem, no Ruby installation and not to Pitwall (see Application).
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
        @gems = {}
      end

      # Whether a method is the application's code.
      #: (MethodInfo | Record::Frame) -> bool
      def mine?(method) = method.kind.zero? && path?(method.path)

      # Whether a path is of the application's code: "/srv/app/lib/a.rb" → true, "/usr/lib/ruby/3.4.0/set.rb" → false
      #: (String) -> bool
      def path?(path) = @paths.fetch(path) { @paths[path] = decide(path) }

      # @return [Symbol, nil] :app; :gems; :stdlib: Ruby's own library, and C functions; :native: native code;
      #   nil: not known, e.g. of a path that was redacted
      #: (MethodInfo | Record::Frame) -> Symbol?
      def of(method)
        case method.kind
        when Record::Frame::RUBY then path?(method.path) ? :app : of_other(method.path)
        when Record::Frame::C then :stdlib
        when Record::Frame::NATIVE then :native
        end
      end

      # The gem that a frame is of, e.g. "rack"; nil: of none. Native code is of the gem whose shared object has it.
      #: (MethodInfo | Record::Frame) -> String?
      def gem(method)
        return unless [Record::Frame::RUBY, Record::Frame::NATIVE].include?(method.kind)

        path = method.path
        @gems.fetch(path) { @gems[path] = Application.gem(path[EVAL, 1] || path, base: @base) }
      end

      # Whether a frame is of the gem with this name, or of a gem that it consists of: "rails" has activerecord's.
      #: (MethodInfo | Record::Frame, String) -> bool
      def gem?(method, name) = Application.gems(name).include?(gem(method))

      private

      def of_other(path)
        inner = path[EVAL, 1]
        return of_other(inner) if inner
        return if path.empty? || path.start_with?(REDACTED)

        Application.ruby?(path, base: @base) ? :stdlib : :gems
      end

      def decide(path)
        inner = path[EVAL, 1]
        return decide(inner) if inner
        return false if path.start_with?(REDACTED)

        Application.path?(path, base: @base)
      end
    end
  end
end

# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/analyse/some_names"
require "pitwall/analyse/recording/method_info"

module Pitwall
  module Analyse
    # Finds the shared objects (executables and libraries) of native functions by a name that the user types.
    module ObjectMatch
      # Paths of the objects that a name means. Tries four rules in order. The first that matches anything wins:
      # 1. the whole path: `/usr/lib/libruby-3.1.so.3.1`, or `[kernel]`
      # 2. the file's name: `libruby-3.1.so.3.1`
      # 3. the file's name without what follows `.so`: `libruby-3.1.so` or `libruby-3.1`
      # 4. that without the version at its end: `libruby.so` or `libruby`; `ruby` for `ruby3.1`
      # @return [Array<String>]
      # @raise [UsageError] when nothing matches; the message has the objects of the recording
      #: (Array[MethodInfo], String) -> Array[String]
      def self.find(methods, name)
        paths = paths(methods)
        raise UsageError, "object #{name.inspect}: the recording has no native functions" if paths.empty?

        found = search(paths, name)
        raise UsageError, "no object #{name.inspect} in the recording: it has #{listed(paths)}" if found.empty?

        found
      end

      # The same of paths, where a name may match nothing.
      #: (Array[String], String) -> Array[String]
      def self.search(paths, name)
        [:itself, :base, :stem, :plain].each do |part|
          sought = send(part, name)
          found = paths.select { |path| !sought.empty? && send(part, path) == sought }
          return found unless found.empty?
        end
        []
      end

      # The shared objects of native functions.
      #: (Array[MethodInfo]) -> Array[String]
      def self.paths(methods) = methods.select(&:native?).map(&:path).reject(&:empty?).uniq

      # Objects that the message lists.
      LISTED = 8
      private_constant :LISTED

      class << self
        private

        def itself(path) = path

        def base(path) = File.basename(path)

        # "libc.so.6" → "libc"; "[kernel]" → "kernel"
        def stem(path) = base(path).delete("[]").sub(/\.(?:so|dylib|bundle)(?:\..*)?\z/, "")

        # "libruby-3.1" → "libruby"; "ruby3.1" → "ruby"
        def plain(path) = stem(path).sub(/-?\d[\d.]*\z/, "")

        def listed(paths) = SomeNames.of(paths.map { |path| base(path) }.uniq, LISTED)
      end
    end
  end
end

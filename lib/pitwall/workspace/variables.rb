# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # The environment variables of one side, put together step by step: its bundle, its Ruby, what is loaded before it, the user's own.
    # Values are changes to this process's environment; nil unsets.
    # @api private
    class Variables
      LISTS = %w[RUBYOPT PATH].freeze # what is added to, not replaced
      private_constant :LISTS

      #: (OuterEnvironment, Workspace::Side) -> void
      def initialize(outer, side)
        @outer = outer
        @side = side
        @changes = {}
        @options = []
        @folders = []
      end

      # Of a process in a clone.
      # @param bundle [Hash, nil] variables with which its bundle is loaded
      # @param load [Boolean] whether every Ruby loads it
      # @param gemfile [String, nil] one outside of the repository, for `bundle exec`
      #: (bundle: Hash[String, String?]?, load: bool, ?gemfile: String?) -> self
      def in_clone(bundle:, load:, gemfile: nil)
        # What Pitwall's own git calls need is no business of a benchmark's.
        @changes = @outer.for_clones.merge(bundle.to_h.reject { |name, _| Git::ENVIRONMENT.key?(name) || name == "RUBYOPT" })
        @changes = @changes.merge("BUNDLE_GEMFILE" => gemfile) if gemfile && bundle.nil?
        @options << "-rbundler/setup" if bundle && load
        self
      end

      #: (Array[String]) -> self
      def with_gem_path(folders)
        @changes = @changes.merge("GEM_PATH" => folders.uniq.join(":"))
        self
      end

      # First in PATH.
      #: (*String) -> self
      def with_programs_of(*folders)
        @folders.concat(folders)
        self
      end

      # For every Ruby that starts. RUBYOPT is split at spaces and knows no quoting.
      # Raises UsageError.
      #: (Array[String]) -> self
      def with_options(options)
        odd = options.find { |option| option.match?(/\s/) }
        raise UsageError, "#{odd.delete_prefix("-r")}: a path with a space can't be loaded into a command; put it elsewhere" if odd

        @options.unshift(*options)
        self
      end

      # @return [Hash] of all of it, the user's own on top
      #: () -> Hash[String, String?]
      def to_h
        changes = @changes
        changes = changes.merge("RUBYOPT" => [*@options, before("RUBYOPT")].compact.join(" ")) if @options.any?
        changes = changes.merge("PATH" => [*@folders, before("PATH")].compact.join(":")) if @folders.any?
        own = @side.env.reject { |name, _| LISTS.include?(name) && changes[name] || name == "BUNDLE_GEMFILE" && changes[name] }
        changes.merge(own)
      end

      private

      def before(name) = @side.env[name] || @changes.fetch(name, @outer[name])
    end
  end
end

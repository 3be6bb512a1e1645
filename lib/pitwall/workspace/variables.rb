# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # Builds the environment variables of one side, from its bundle, its Ruby, preloaded files and the user's --env.
    # Values are changes to this process's environment; nil unsets a variable.
    # @api private
    class Variables
      LISTS = %w[RUBYOPT PATH].freeze # variables that are extended, not replaced
      private_constant :LISTS

      #: (OuterEnvironment, Workspace::Side) -> void
      def initialize(outer, side)
        @outer = outer
        @side = side
        @changes = {}
        @options = []
        @folders = []
      end

      # Adds the variables of a process in a clone.
      # @param bundle [Hash, nil] variables of the clone's bundle
      # @param load [Boolean] whether every Ruby loads the bundle
      # @param gemfile [String, nil] a Gemfile outside of the repository, for `bundle exec`
      #: (bundle: Hash[String, String?]?, load: bool, ?gemfile: String?) -> self
      def in_clone(bundle:, load:, gemfile: nil)
        # Variables of Pitwall's own git calls are removed: the benchmark may call git too.
        bundle_variables = bundle.to_h.reject { |name, _| Git::ENVIRONMENT.key?(name) || name == "RUBYOPT" }
        @changes = @outer.for_clones.merge(bundle_variables)
        @changes = @changes.merge("BUNDLE_GEMFILE" => gemfile) if gemfile && bundle.nil?
        @options << "-rbundler/setup" if bundle && load
        self
      end

      # Sets the folders that Ruby searches for gems.
      #: (Array[String]) -> self
      def with_gem_path(folders)
        @changes = @changes.merge("GEM_PATH" => folders.uniq.join(":"))
        self
      end

      # Puts folders first in PATH.
      #: (*String) -> self
      def with_programs_of(*folders)
        @folders.concat(folders)
        self
      end

      # Adds options for every Ruby that starts (RUBYOPT).
      # Raises UsageError for an option with a space: Ruby splits RUBYOPT at spaces, without quoting.
      #: (Array[String]) -> self
      def with_options(options)
        spaced = options.find { |option| option.match?(/\s/) }
        if spaced
          raise UsageError, "#{spaced.delete_prefix("-r")}: a path with a space can't be loaded into a command; " \
                            "put it elsewhere"
        end

        @options.unshift(*options)
        self
      end

      # All variables. The user's --env overrides the others; PATH, RUBYOPT and a bundle's Gemfile are extended or kept.
      #: () -> Hash[String, String?]
      def to_h
        changes = @changes
        changes = changes.merge("RUBYOPT" => [*@options, base_value("RUBYOPT")].compact.join(" ")) if @options.any?
        changes = changes.merge("PATH" => [*@folders, base_value("PATH")].compact.join(":")) if @folders.any?
        own = @side.env.reject do |name, _|
          LISTS.include?(name) && changes[name] || name == "BUNDLE_GEMFILE" && changes[name]
        end
        changes.merge(own)
      end

      private

      # A variable's value before folders or options are added.
      def base_value(name) = @side.env[name] || @changes.fetch(name, @outer[name])
    end
  end
end

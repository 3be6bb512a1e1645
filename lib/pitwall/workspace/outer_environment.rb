# frozen_string_literal: true

require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # The environment variables of this process. Under `bundle exec pitwall …` Bundler has changed some of them; this
    # class undoes Bundler's changes for child processes.
    # @api private
    class OuterEnvironment
      SAVED = "BUNDLER_ORIG_"
      WAS_NIL = "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL"
      SETUP = %r{\A-r\S*bundler/setup\z}.freeze
      OF_BUNDLER = %w[BUNDLE_GEMFILE BUNDLE_BIN_PATH BUNDLER_SETUP BUNDLER_VERSION].freeze
      private_constant :SAVED, :WAS_NIL, :SETUP, :OF_BUNDLER

      #: (?Hash[String, String]) -> void
      def initialize(environment = ENV)
        @environment = environment.to_h
      end

      # A variable's value, with Bundler's changes.
      #: (String) -> String?
      def [](name) = @environment[name]

      # Whether RUBYOPT makes every Ruby that is started load the bundle.
      #: () -> bool
      def bundled? = @environment["RUBYOPT"].to_s.split.any?(SETUP)

      # The changes that undo Bundler's changes; nil unsets a variable.
      #: () -> Hash[String, String?]
      def unbundled
        saved = @environment.select { |name, _| name.start_with?(SAVED) }
        restored = saved.to_h { |name, value| [name.delete_prefix(SAVED), (value unless value == WAS_NIL)] }
        changes = saved.keys.to_h { |name| [name, nil] }.merge(restored, OF_BUNDLER.to_h { |name| [name, nil] })
        options = changes.fetch("RUBYOPT", @environment["RUBYOPT"]).to_s.split.grep_v(SETUP).join(" ")
        needed(changes.merge("RUBYOPT" => (options unless options.empty?)))
      end

      # The changes for processes in a clone. These also unset git's variables: a hook's GIT_DIR would make gemspecs
      # in the clone read the user's repository.
      #: () -> Hash[String, String?]
      def for_clones = unbundled.merge(needed(Git::LOCAL.to_h { |name| [name, nil] }))

      # The changes for programs that build a clone.
      #: () -> Hash[String, String?]
      def for_builds = for_clones.merge("RUBYOPT" => nil, "GIT_OPTIONAL_LOCKS" => "0", "GIT_TERMINAL_PROMPT" => "0")

      private

      def needed(changes) = changes.reject { |name, value| @environment[name] == value }
    end
  end
end

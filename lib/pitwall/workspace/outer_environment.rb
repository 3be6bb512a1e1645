# frozen_string_literal: true

require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # The variables of this process, and how to undo what a Bundler around it (`bundle exec pitwall …`) has put there.
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

      #: (String) -> String?
      def [](name) = @environment[name]

      # @return [Boolean] whether Rubies started from here load a bundle by themselves
      #: () -> bool
      def bundled? = @environment["RUBYOPT"].to_s.split.any?(SETUP)

      # Changes after which there is no Bundler.
      #: () -> Hash[String, String?]
      def unbundled
        saved = @environment.select { |name, _| name.start_with?(SAVED) }
        restored = saved.to_h { |name, value| [name.delete_prefix(SAVED), (value unless value == WAS_NIL)] }
        changes = saved.keys.to_h { |name| [name, nil] }.merge(restored, OF_BUNDLER.to_h { |name| [name, nil] })
        options = changes.fetch("RUBYOPT", @environment["RUBYOPT"]).to_s.split.grep_v(SETUP).join(" ")
        needed(changes.merge("RUBYOPT" => (options unless options.empty?)))
      end

      # Changes for processes in a clone: a hook's GIT_DIR would lead its gemspecs to the user's repository.
      #: () -> Hash[String, String?]
      def for_clones = unbundled.merge(needed(Git::LOCAL.to_h { |name| [name, nil] }))

      # Changes for programs that build.
      #: () -> Hash[String, String?]
      def for_builds = for_clones.merge("RUBYOPT" => nil, "GIT_OPTIONAL_LOCKS" => "0", "GIT_TERMINAL_PROMPT" => "0")

      private

      def needed(changes) = changes.reject { |name, value| @environment[name] == value }
    end
  end
end

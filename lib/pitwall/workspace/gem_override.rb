# frozen_string_literal: true

require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # A Gemfile beside the project's own that asks for what that asks for, with other versions of some gems.
    # It stands beside it so that relative paths in the lock file, which it starts from, mean the same.
    # @api private
    module GemOverride
      # Evaluated by Bundler, where `self` is what Gemfiles talk to. A gem declared twice gets the version twice, one declared
      # nowhere (what another gem depends on) is added, and one that came from a folder or from git comes as a release.
      # Newer Bundlers' `gemspec` goes past `gem` to `add_dependency`.
      TEXT = <<~'RUBY'
        versions = %<versions>p
        declared = {}
        without_path = lambda do |&declare|
          outer = @source
          @source = nil if outer.is_a?(Bundler::Source::Path)
          begin
            declare.call
          ensure
            @source = outer
          end
        end
        define_singleton_method(:gem) do |name, *arguments|
          next super(name, *arguments) unless versions.key?(name)

          declared[name] = true
          options = arguments.last.is_a?(Hash) ? arguments.last.dup : {}
          %%w[path git github gist bitbucket branch ref tag submodules glob name].each { |key| options.delete(key) || options.delete(key.to_sym) }
          without_path.call { super(name, versions[name], options) }
        end
        if respond_to?(:add_dependency, true)
          define_singleton_method(:add_dependency) do |name, version = nil, options = {}|
            next super(name, version, options) unless versions.key?(name)

            declared[name] = true
            without_path.call { super(name, [versions[name]], options) }
          end
        end
        eval_gemfile %<gemfile>p
        versions.each_key { |name| gem(name) unless declared[name] }
      RUBY
      private_constant :TEXT

      module_function

      # @param gems [Hash] name → version
      #: (String, Hash[String, String]) -> String
      def path(gemfile, gems) = File.join(File.dirname(gemfile), "pitwall-#{Store.key(File.basename(gemfile), gems)}.gemfile")

      # Writes it with a copy of the project's lock file.
      #: (String, Hash[String, String]) -> void
      def write(gemfile, gems)
        path = path(gemfile, gems)
        lock = Bundle.lock_of(gemfile)
        FileUtils.cp(lock, "#{path}.lock") if File.file?(lock)
        File.write(path, format(TEXT, versions: gems, gemfile: gemfile))
      end
    end
  end
end

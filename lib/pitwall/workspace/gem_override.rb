# frozen_string_literal: true

require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # A Gemfile that evaluates the project's Gemfile with other versions of some gems. Its lock file starts as a copy of
    # the project's. Both files lie beside the project's Gemfile, so that relative paths in the lock file stay valid.
    # @api private
    module GemOverride
      # Bundler evaluates this text; `self` is Bundler's DSL object.
      # A gem that is declared twice gets the version twice. A gem that is not declared (a dependency of another gem)
      # is added. A gem from a folder or from git is replaced by a release.
      # `gemspec` of newer Bundlers calls `add_dependency`, not `gem`, so both are overridden.
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
          %%w[path git github gist bitbucket branch ref tag submodules glob name].each do |key|
            options.delete(key) || options.delete(key.to_sym)
          end
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

      # Path of the Gemfile for some gems' versions.
      # @param gems [Hash] name → version
      #: (String, Hash[String, String]) -> String
      def path(gemfile, gems)
        File.join(File.dirname(gemfile), "pitwall-#{Store.key(File.basename(gemfile), gems)}.gemfile")
      end

      # Writes the Gemfile and a copy of the project's lock file.
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

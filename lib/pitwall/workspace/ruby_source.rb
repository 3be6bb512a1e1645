# frozen_string_literal: true

require "etc"
require "fileutils"
require "pitwall/workspace/build_log"
require "pitwall/workspace/checkout"
require "pitwall/workspace/outer_environment"
require "pitwall/workspace/repository"
require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # Builds an interpreter from a revision of its source, and installs it into a folder of the cache.
    # @api private
    class RubySource
      COMPILER_VARIABLES = %w[CC CFLAGS CPPFLAGS CXXFLAGS LDFLAGS LIBS optflags debugflags RUSTC].freeze
      # The targets of `make install` without the bundled gems: these may be downloaded.
      WITHOUT_GEMS = %w[install-bin install-lib install-ext install-arch install-comm].freeze
      private_constant :COMPILER_VARIABLES, :WITHOUT_GEMS

      # @param arguments [Array<String>] arguments of `configure`
      #: (Store, arguments: Array[String], outer: OuterEnvironment, on_step: ^(String) -> void) -> void
      def initialize(store, arguments:, outer:, on_step:)
        @store = store
        @arguments = arguments
        @outer = outer
        @on_step = on_step
      end

      # Builds the interpreter unless the cache has it.
      # @param folder folder of Ruby's source, a git repository
      # @return [Array(String, Content)] the interpreter's path, and the content that it was built from
      # Raises UsageError, BuildFailed.
      #: (String, String) -> [String, Content]
      def build(folder, revision)
        content = Repository.at(folder).revision(revision)
        key = Store.key("ruby", content.identity, @arguments, COMPILER_VARIABLES.map { |name| @outer[name] })
        prefix = @store.path("rubies", key)
        log = BuildLog.new(side: "#{File.basename(folder)}@#{revision}", path: @store.log(key), on_step: @on_step)
        @store.fetch("rubies", key) { |place| make(content, prefix, place, log) }
        program = File.join(prefix, "bin", "ruby")
        [program, content]
      end

      private

      # Installs with the final prefix into a staging folder (DESTDIR), because the prefix is compiled into the
      # interpreter.
      def make(content, prefix, place, log)
        source = @store.scratch("source")
        env = @outer.for_builds
        Checkout.new(log).call(content, source)
        configure, autogen = %w[configure autogen.sh].map { |name| File.join(source, name) }
        log.run("autogen.sh", ["./autogen.sh"], dir: source, env: env) if !File.file?(configure) && File.file?(autogen)
        log.fail!("configure", "there is no configure in it: is it the source of Ruby?") unless File.file?(configure)
        log.run("configure", ["./configure", "--prefix=#{prefix}", "--disable-install-doc", *@arguments],
                dir: source, env: env)
        program = @outer["MAKE"] || "make"
        log.run("make", [program, "-j#{Etc.nprocessors}"], dir: source, env: env)
        staging = @store.scratch("staging")
        unless log.try("make install", [program, "install", "DESTDIR=#{staging}"], dir: source, env: env).success?
          log.note("without the bundled gems, which may need a network:")
          log.run("make install", [program, *WITHOUT_GEMS, "DESTDIR=#{staging}"], dir: source, env: env)
        end
        installed = File.join(staging, prefix)
        unless File.executable?(File.join(installed, "bin", "ruby"))
          log.fail!("make install", "it installed no bin/ruby")
        end

        Dir.children(installed).each { |name| File.rename(File.join(installed, name), File.join(place, name)) }
      ensure
        FileUtils.rm_rf([source, staging].compact)
      end
    end
  end
end

# frozen_string_literal: true

module Pitwall
  class Workspace
    # Whether changed files can change what is measured. Documents, pictures and the settings of CI services can't: no
    # Ruby, extension, lock or configuration file that a program loads is among them. Whatever is not known can.
    module Reach
      # Kinds of files that programs don't load.
      DOCUMENT = /\.(?:md|markdown|rdoc|adoc|asciidoc|rst|textile|pdf|png|jpe?g|gif|svg|webp)\z/i.freeze
      # Names of documents without an extension, such as LICENSE-MIT, or with that of a text. Any other extension is
      # that of something a program may load: history.c, security.yml, news.html.erb.
      NAME = /\A(?:licen[sc]e|copying|authors|contributors|contributing|changelog|changes|history|news|readme|notice|
                   codeowners|security|code_of_conduct)(?:-[\w-]+)?(?:\.te?xt)?\z/xi.freeze
      SETTINGS = %w[.gitignore .editorconfig .gitlab-ci.yml .travis.yml .rubocop.yml .yardopts .mailmap].freeze
      SERVICES = %w[.github/ .gitlab/ .circleci/ .buildkite/].freeze
      # Folders whose files a program may load, whatever their kind.
      LOADED = %w[lib app ext exe bin config db vendor].freeze
      private_constant :DOCUMENT, :NAME, :SETTINGS, :SERVICES, :LOADED

      module_function

      # The files that can change what is measured.
      # @param paths of the changed files, from the repository's top
      # @param script [String, nil] path of the benchmark file: all sides run the working tree's
      # @param words text of the benchmark file, or the command: a file that it names can change what is measured
      #: (Array[String], ?script: String?, ?words: String) -> Array[String]
      def reaching(paths, script: nil, words: "")
        paths.reject { |path| path == script || (outside?(path, script) && !words.include?(File.basename(path))) }
      end

      # Whether a file is none that programs load.
      # @api private
      def outside?(path, script)
        folders = path.split("/")[0...-1]
        name = File.basename(path)
        return true if SERVICES.any? { |folder| path.start_with?(folder) }
        return false if (folders & LOADED).any?
        return false if script && folders.any? && File.dirname(path) == File.dirname(script)

        name.match?(DOCUMENT) || SETTINGS.include?(path) || name.match?(NAME)
      end
    end
  end
end

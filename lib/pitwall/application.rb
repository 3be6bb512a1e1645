# frozen_string_literal: true

module Pitwall
  # Which Ruby files are the application's: files of no gem, of no Ruby, of no `vendor/bundle` folder and not Pitwall's.
  # Collectors and reports ask here, so both call the same lines the application's.
  # @api private
  module Application
    # The files in which RubyGems describes installed gems: "/var/lib/gems/3.1.0/specifications/rake-13.0.6.gemspec".
    SPECIFICATION = %r{/specifications/(?:default/)?[^/]+-\d[^/]*\.gemspec\z}.freeze
    # Ruby's own library, Debian's folders for gems and RubyGems: "/usr/lib/x86_64-linux-gnu/ruby/3.1.0/openssl.so".
    RUBY = %r{/lib/(?:[^/]+/)?ruby/(?:\d|vendor_ruby/|site_ruby/)|/rubygems/|/rubygems-integration/|
              #{SPECIFICATION}}x.freeze
    # "…/gems/rack-3.1.8/lib/rack.rb", "…/bundler/gems/rack-1f2e3d4c5b6a/lib/rack.rb"
    GEM = %r{/gems/[^/]+-(?:\d[^/]*|\h{7,})/}.freeze
    # The same with the gem's name, also of its compiled files: "…/extensions/x86_64-linux/3.4.0/racc-1.8.1/".
    NAMED_GEM = %r{/(?:gems|cache|extensions/[^/]+/[^/]+)/([^/]+?)-(?:\d+(?:\.[^/]*)?|\h{7,})/}.freeze
    VENDORED = %r{(?:\A|/)vendor/(?:bundle|cache|gems|ruby)/}.freeze
    # Executables that RubyGems or a distribution installed: "/usr/bin/puma", "~/.gem/ruby/3.1.0/bin/puma",
    # "~/.rbenv/versions/3.4.1/bin/puma", "/opt/rubies/ruby-3.4.1/bin/puma".
    INSTALLED = %r{\A/(?:usr/(?:local/)?)?s?bin/|/(?:ruby|versions)/\d[^/]*/bin/|/ruby-\d[^/]*/bin/}.freeze
    # Gems whose code is in other gems.
    PARTS = {
      "rails" => %w[railties actioncable actionmailbox actionmailer actionpack actiontext actionview activejob
                    activemodel activerecord activestorage activesupport],
      "rspec" => %w[rspec-core rspec-expectations rspec-mocks rspec-support]
    }.freeze
    # "(eval at /srv/app/a.rb:3)" is code of /srv/app/a.rb.
    EVAL = /\A\(eval at (.*):\d+\)\z/m.freeze
    # "…/lib/pitwall" of this Pitwall.
    TOOL = __dir__
    private_constant :RUBY, :SPECIFICATION, :GEM, :NAMED_GEM, :VENDORED, :INSTALLED, :PARTS, :EVAL, :TOOL

    class << self
      # @param base [String, nil] the application's folder with a slash at its end, whose own path may look like a gem's
      #: (String, ?base: String?) -> bool
      def path?(path, base: nil)
        inner = path[EVAL, 1]
        return path?(inner, base: base) if inner
        return false if path.empty? || path.start_with?("<internal:", "#{TOOL}/", "#{TOOL}.rb")

        path = path.delete_prefix(base) if base
        !path.match?(RUBY) && !path.match?(GEM) && !path.match?(VENDORED) && !path.match?(INSTALLED)
      end

      # The name of the gem that a file belongs to: "…/gems/rack-3.1.8/lib/rack.rb" → "rack"; nil: of none.
      #: (String, ?base: String?) -> String?
      def gem(path, base: nil)
        path = path.delete_prefix(base) if base
        path.scan(NAMED_GEM).last&.first
      end

      # The gems that a gem's name means: "rack" → ["rack"], "rails" → ["rails", "railties", "actioncable", …]
      #: (String) -> Array[String]
      def gems(name) = [name, *PARTS[name]]

      # Gems whose code is in other gems: {"rspec" => ["rspec-core", …]}
      #: () -> Hash[String, Array[String]]
      def parts = PARTS

      # Does RubyGems describe an installed gem in this file?
      #: (String) -> bool
      def specification?(path) = path.match?(SPECIFICATION)

      # Whether a file is of Ruby's own library: neither of a gem nor of the application.
      #: (String, ?base: String?) -> bool
      def ruby?(path, base: nil)
        path = path.delete_prefix(base) if base
        path.start_with?("<internal:") || (path.match?(RUBY) && !path.match?(GEM))
      end
    end
  end
end

# frozen_string_literal: true

require "digest"
require "tmpdir"
require "fileutils"
require "pitwall/errors"

module Pitwall
  class Launch
    # The environment variables by which a Ruby process and its children learn that they are recorded, and how.
    #
    #   PITWALL_PARTS    absolute path of the folder each process puts its part into
    #   PITWALL_OPTIONS  "interval_ns=1000000;mode=signal;…"
    #   RUBYOPT          requires the bootstrap, then what the user had
    class TargetEnvironment
      LINK = "pitwall_boot" # what the link to the bootstrap is called
      # The bootstrap of an outer `pitwall profile`, whose recording this one would be in.
      BOOTSTRAP = %r{\A-r\S*/(?:#{LINK}|pitwall/collect/bootstrap)\z}.freeze
      private_constant :LINK, :BOOTSTRAP

      # @param parts [String] absolute path of a folder
      # @param options [Hash] names and values without ";" and "="
      #: (parts: String, options: Hash[Symbol, untyped], ?bootstrap: String?) -> void
      def initialize(parts:, options:, bootstrap: nil)
        @parts = parts
        @options = options
        @bootstrap = bootstrap || self.class.bootstrap
      end

      # Where this installation's bootstrap lies.
      #: () -> String
      def self.bootstrap
        _, path = $LOAD_PATH.resolve_feature_path("pitwall/collect/bootstrap")
        path or raise CannotMeasure, "pitwall-core is not installed beside pitwall: gem install pitwall-core -v #{VERSION}"
      end

      # @return the variables to set; `outer` is the environment they go on top of
      #: (?Hash[String, String]) -> Hash[String, String]
      def to_h(outer = ENV)
        {
          "PITWALL_PARTS" => @parts,
          "PITWALL_OPTIONS" => @options.map { |name, value| "#{name}=#{value}" }.join(";"),
          "RUBYOPT" => ["-r#{without_spaces}", *outer["RUBYOPT"].to_s.split.grep_v(BOOTSTRAP)].join(" ")
        }
      end

      private

      # RUBYOPT is split at spaces and knows no quoting. Where the bootstrap's own path has none it is used as it is;
      # a link would have to outlive this process, since the command may leave daemons behind whose Rubies
      # could not start once it is gone.
      def without_spaces
        path = @bootstrap.delete_suffix(".rb")
        return path unless path.match?(/\s/)

        link = File.join(link_folder, Digest::SHA256.hexdigest(@bootstrap)[0, 16], LINK)
        FileUtils.mkdir_p(File.dirname(link))
        begin
          File.symlink(@bootstrap, "#{link}.rb")
        rescue Errno::EEXIST
          nil
        end
        link
      end

      # One folder a user, which stays. In a folder that all may write to, it must be checked to be one's own.
      def link_folder
        folder = [Dir.tmpdir, "/tmp", "/var/tmp"].find { |dir| !dir.match?(/\s/) && File.writable?(dir) }
        raise CannotMeasure, "no temporary folder without a space in its path: set TMPDIR to one" unless folder

        path = File.join(folder, "pitwall-#{Process.euid}")
        begin
          Dir.mkdir(path, 0o700)
        rescue Errno::EEXIST
          stat = File.lstat(path)
          return Dir.mktmpdir("pitwall-", folder) unless stat.directory? && stat.owned? && (stat.mode & 0o077).zero?
        end
        path
      end
    end
  end
end

# frozen_string_literal: true

require "digest"
require "tmpdir"
require "fileutils"
require "pitwall/errors"

module Pitwall
  class Launch
    # The environment variables that start the recording in a Ruby process and its children.
    #
    #   PITWALL_PARTS    absolute path of the folder into which each process writes its part
    #   PITWALL_OPTIONS  "interval_ns=1000000;mode=signal;…"
    #   RUBYOPT          requires the bootstrap; the user's own options follow
    class TargetEnvironment
      LINK = "pitwall_boot" # name of a link to the bootstrap
      # The bootstrap in the RUBYOPT of an outer `pitwall profile`. It is removed: a process has one recording.
      BOOTSTRAP = %r{\A-r\S*/(?:#{LINK}|pitwall/collect/bootstrap)\z}.freeze
      private_constant :LINK, :BOOTSTRAP

      # @param parts [String] absolute path of a folder
      # @param options [Hash] names and values, without ";" and "="
      # @param bootstrap [String, nil] path of the bootstrap; nil: this installation's
      #: (parts: String, options: Hash[Symbol, untyped], ?bootstrap: String?) -> void
      def initialize(parts:, options:, bootstrap: nil)
        @parts = parts
        @options = options
        @bootstrap = bootstrap || self.class.bootstrap
      end

      # @return [String] path of this installation's bootstrap
      # @raise [CannotMeasure]
      #: () -> String
      def self.bootstrap
        _, path = $LOAD_PATH.resolve_feature_path("pitwall/collect/bootstrap")
        path or
          raise CannotMeasure, "pitwall-core is not installed beside pitwall: gem install pitwall-core -v #{VERSION}"
      end

      # @param outer [#to_hash] the environment that the variables are added to
      # @return [Hash<String, String>] the variables to set
      #: (?Hash[String, String]) -> Hash[String, String]
      def to_h(outer = ENV)
        {
          "PITWALL_PARTS" => @parts,
          "PITWALL_OPTIONS" => @options.map { |name, value| "#{name}=#{value}" }.join(";"),
          "RUBYOPT" => ["-r#{without_spaces}", *outer["RUBYOPT"].to_s.split.grep_v(BOOTSTRAP)].join(" ")
        }
      end

      private

      # Ruby splits RUBYOPT at spaces and knows no quoting. A path without spaces is used as it is. For another
      # path there is a link, which is never removed: the command may leave daemons behind, whose Rubies could
      # not start without it.
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

      # A folder of the user's own, which stays. It lies in a folder that everybody may write to, so its owner and its
      # permissions are checked.
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

# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/launch/plain_path"

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
          "RUBYOPT" => ["-r#{PlainPath.of(@bootstrap, LINK)}", *outer["RUBYOPT"].to_s.split.grep_v(BOOTSTRAP)].join(" ")
        }
      end
    end
  end
end

# frozen_string_literal: true

require "yaml"

module Witness
  # Differences that are known, with the reason: exceptions.yml beside this file. doc/witnesses.md names the same.
  # `rubies`: the versions on which the difference was seen ("3.1"). Without it the exception holds for every version.
  # A gem's test is matched by the end of its name, the description, without the place in the file.
  class Exceptions
    Known = Struct.new(:test, :ways, :rubies, :reason, keyword_init: true)

    FILE = File.join(__dir__, "exceptions.yml")

    #: (?String) -> Exceptions
    def self.read(file = FILE)
      new((YAML.safe_load_file(file) || []).map { |entry| Known.new(**entry.transform_keys(&:to_sym)) })
    end

    attr_reader :all

    def initialize(all)
      @all = all
    end

    # @return [String, nil] why the outcome may differ on that Ruby
    #: (Difference, ?ruby: String) -> String?
    def reason(difference, ruby: RUBY_VERSION)
      all.find { |known| names?(known, difference.test) && known.ways.include?(difference.way) && on?(known, ruby) }&.reason
    end

    private

    def on?(known, ruby) = known.rubies.nil? || known.rubies.include?(ruby[/\A\d+\.\d+/])
    def names?(known, test) = test == known.test || test.end_with?(" #{known.test}")
  end
end

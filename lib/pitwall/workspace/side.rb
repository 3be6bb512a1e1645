# frozen_string_literal: true

module Pitwall
  class Workspace
    # One side of a comparison, as the user defined it.
    #
    # name:        label in reports, or nil
    # rev:         a git revision, or nil
    # dirty:       true: the working tree with its uncommitted changes
    # ruby:        an interpreter and its flags, e.g. ["ruby3.4", "--yjit"], or nil
    # ruby_source: [folder, revision] of an interpreter to build, or nil
    # env:         environment variables: name → value
    # gems:        versions of gems: name → version
    # patches:     absolute paths; .rb files are loaded before the benchmark, .diff and .patch are applied to a clone
    # stub:        a method to empty, e.g. "Foo#bar", or nil
    # code:        code of -e, or nil
    Side = Struct.new(:name, :rev, :dirty, :ruby, :ruby_source, :env, :gems, :patches, :stub, :code,
                      keyword_init: true) do
      def initialize(name: nil, rev: nil, dirty: false, ruby: nil, ruby_source: nil, env: {}, gems: {}, patches: [],
                     stub: nil, code: nil)
        super
      end

      # The patches that are applied to a clone.
      #: () -> Array[String]
      def diffs = patches.grep(/\.(?:diff|patch)\z/)

      # The patches that are loaded before the benchmark.
      #: () -> Array[String]
      def scripts = patches - diffs

      # Whether the side needs a clone.
      #: () -> bool
      def tree? = !rev.nil? || dirty || diffs.any?
    end
  end
end

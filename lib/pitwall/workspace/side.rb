# frozen_string_literal: true

module Pitwall
  class Workspace
    # What the user said of one side of a comparison.
    #
    # name:     its label
    # rev:      a revision, or nil · dirty: the working tree as it stands, uncommitted changes and all
    # ruby:     an interpreter and its flags as words, or nil
    # ruby_source: [folder, revision] of an interpreter to build, or nil
    # env:      variables · gems: name → version · stub: a method to empty, or nil · code: what -e gave, or nil
    # patches:  absolute paths: .rb is loaded before the benchmark, .diff and .patch are applied to a clone
    Side = Struct.new(:name, :rev, :dirty, :ruby, :ruby_source, :env, :gems, :patches, :stub, :code, keyword_init: true) do
      def initialize(name: nil, rev: nil, dirty: false, ruby: nil, ruby_source: nil, env: {}, gems: {}, patches: [], stub: nil, code: nil)
        super
      end

      #: () -> Array[String]
      def diffs = patches.grep(/\.(?:diff|patch)\z/)

      #: () -> Array[String]
      def scripts = patches - diffs

      # Whether it needs a tree of its own.
      #: () -> bool
      def tree? = !rev.nil? || dirty || diffs.any?
    end
  end
end

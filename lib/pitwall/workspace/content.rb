# frozen_string_literal: true

module Pitwall
  class Workspace
    # What a tree holds, before it is checked out.
    #
    # commit:        nil where there is none yet
    # tree:          git's name of it, which follows from the content
    # extra_objects: folder of objects that aren't in the repository (uncommitted changes), or nil
    # submodules:    path → Content or Absent
    # changed:       whether it differs from the commit
    # @api private
    Content = Struct.new(:repository, :commit, :tree, :title, :extra_objects, :submodules, :changed, keyword_init: true) do
      # What tells it from others.
      #: () -> Array[untyped]
      def identity = [repository.common_dir, tree, submodules.map { |path, content| [path, content.identity] }]
    end

    # A submodule at a commit that isn't on this machine.
    # @api private
    Absent = Struct.new(:url, :commit, keyword_init: true) do
      #: () -> Array[String]
      def identity = [url, commit]
    end
  end
end

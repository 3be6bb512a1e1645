# frozen_string_literal: true

module Pitwall
  class Workspace
    # The content of a revision or of the working tree, before it is checked out.
    #
    # repository:    Repository
    # commit:        the commit's id; nil in a repository without commits
    # tree:          id of git's tree object, a hash of the content
    # title:         first line of the commit message; nil for the working tree
    # extra_objects: folder of git objects that aren't in the repository (uncommitted changes), or nil
    # submodules:    path → Content or Absent
    # changed:       whether the content differs from the commit
    # @api private
    Content = Struct.new(:repository, :commit, :tree, :title, :extra_objects, :submodules, :changed,
                         keyword_init: true) do
      # A part of the clone's cache key: equal identities mean equal content.
      #: () -> Array[untyped]
      def identity = [repository.common_dir, tree, submodules.map { |path, content| [path, content.identity] }]
    end

    # A submodule at a commit that isn't on this machine.
    # @api private
    Absent = Struct.new(:url, :commit, keyword_init: true) do
      # A part of the clone's cache key.
      #: () -> Array[String]
      def identity = [url, commit]
    end
  end
end

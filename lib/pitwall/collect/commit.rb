# frozen_string_literal: true

module Pitwall
  module Collect
    # Which commit is checked out around the working directory. Reads git's files and starts no process: the program under measurement asks.
    # Layout: gitrepository-layout(5).
    # @api private
    module Commit
      NAME = /\A\h{40}(\h{24})?\z/
      REF = %r{\Aref: (refs/[^\0\n]+)\z}
      # A repository of a hundred thousand refs.
      LARGEST_LIST = 8 << 20
      private_constant :NAME, :REF, :LARGEST_LIST

      class << self
        # @return [String, nil] its whole name; nil outside of a repository, before the first commit, where refs are not kept in files, and
        #   in a directory that is gone
        #: () -> String?
        def checked_out
          git = git_folder(Dir.pwd) or return
          head = first_line(File.join(git, "HEAD")).to_s
          return head if head.match?(NAME)

          ref = head[REF, 1]
          return if ref.nil? || ref.split("/").include?("..")

          # A linked worktree has a HEAD of its own; branches are with the main one.
          common = File.expand_path(first_line(File.join(git, "commondir")) || ".", git)
          [git, common].each { |place| first_line(File.join(place, ref))&.then { |name| return name if name.match?(NAME) } }
          packed(File.join(common, "packed-refs"), ref)
        rescue SystemCallError, ArgumentError, EncodingError # what is in the files may be anything
          nil
        end

        private

        def git_folder(folder)
          loop do
            place = File.join(folder, ".git")
            return place if File.directory?(place)
            return File.expand_path(first_line(place).to_s.delete_prefix("gitdir: "), folder) if File.file?(place)

            parent = File.dirname(folder)
            return if parent == folder

            folder = parent
          end
        end

        # nil where there is no such file.
        def first_line(path)
          File.open(path) { |file| file.gets("\n", 4096, chomp: true) } if File.file?(path)
        end

        # "name ref" lines, after comments.
        def packed(list, ref)
          return unless File.file?(list) && File.size(list) <= LARGEST_LIST

          File.foreach(list, chomp: true) do |line|
            name, found = line.split(" ", 2)
            return name if found == ref && name.match?(NAME)
          end
          nil
        end
      end
    end
    private_constant :Commit
  end
end

# frozen_string_literal: true

module Pitwall
  module Collect
    # Finds the commit that is checked out around the working directory. It reads git's files and starts no process,
    # because it runs in the measured program. Layout of the files: gitrepository-layout(5).
    # @api private
    module Commit
      NAME = /\A\h{40}(\h{24})?\z/
      REF = %r{\Aref: (refs/[^\0\n]+)\z}
      # The size of packed-refs with a hundred thousand refs.
      MAX_PACKED_BYTES = 8 << 20
      private_constant :NAME, :REF, :MAX_PACKED_BYTES

      class << self
        # @return [String, nil] the commit's whole name. nil outside of a repository, before the first commit, in a
        #   repository whose refs are not files, and in a directory that was removed.
        #: () -> String?
        def checked_out
          git = git_folder(Dir.pwd) or return
          head = first_line(File.join(git, "HEAD")).to_s
          return head if head.match?(NAME)

          ref = head[REF, 1]
          return if ref.nil? || ref.split("/").include?("..")

          # A linked worktree has its own HEAD. Its branches are in the main worktree's folder.
          common = File.expand_path(first_line(File.join(git, "commondir")) || ".", git)
          loose = [git, common].filter_map { |folder| first_line(File.join(folder, ref)) }
          loose.find { |name| name.match?(NAME) } || packed(File.join(common, "packed-refs"), ref)
        rescue SystemCallError, ArgumentError, EncodingError # the files may hold anything
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

        # nil if there is no such file.
        def first_line(path)
          File.open(path) { |file| file.gets("\n", 4096, chomp: true) } if File.file?(path)
        end

        # Searches the lines "COMMIT REF".
        def packed(list, ref)
          return unless File.file?(list) && File.size(list) <= MAX_PACKED_BYTES

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

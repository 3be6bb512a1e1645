# frozen_string_literal: true

module Pitwall
  module Collect
    # How many cores this process may use at once: those that it may run on, and what its control groups allow of them. Asked in the
    # measured process, so it uses nothing but core Ruby.
    # @api private
    class Cores
      # A reader on another core beside a program on one.
      WANTED = 2
      # A control group's limit: the file, and how it says it.
      V2 = ["cpu.max"].freeze
      V1 = %w[cpu.cfs_quota_us cpu.cfs_period_us].freeze
      private_constant :WANTED, :V2, :V1

      # @return [Integer, nil] cores that the calling thread may run on; nil: unknown
      attr_reader :allowed

      # @param process [String] the folder in which Linux tells of a process
      #: (Integer?, ?process: String) -> void
      def initialize(allowed, process: "/proc/self")
        @allowed = allowed
        @process = process
      end

      # How many cores' worth of time the process may use: the least that its control groups, or those around them, allow. Nil: no limit.
      #: () -> Float?
      def quota = groups.filter_map { |folder, files| limit(folder, files) }.min

      # Why no core is spare for a reader; nil where one is.
      #: () -> String?
      def refusal
        return "the process may use 1 core" if allowed && allowed < WANTED

        share = quota
        "its CPU quota is #{share.round(2)} cores" if share && share < WANTED
      end

      private

      def limit(folder, files)
        quota, period = files.flat_map { |file| read(File.join(folder, file)).split }
        quota.to_i.fdiv(period.to_i) if quota.to_i.positive? && period.to_i.positive?
      end

      # The process's own groups and all around them that can be seen from here: [folder, files].
      def groups
        mounts.flat_map do |root, point, version1|
          path = membership(version1)
          next [] unless path

          # Seen through a mount of a part of the tree, where it lies in that; else the mount's own group is what is known.
          path = "#{path}/".start_with?("#{root}/") ? path.delete_prefix(root) : "" unless root == "/"
          parts = path.split("/").reject { |part| part.empty? || part == ".." }
          (0..parts.size).map { |n| [File.join(point, *parts.first(n)), version1 ? V1 : V2] }
        end
      end

      # Where control groups with CPU limits are: [the group at the mount's root, the folder, of version 1?].
      def mounts
        read("#{@process}/mountinfo").each_line.filter_map do |line|
          place, kind = line.split(" - ", 2).map(&:split)
          version1 = kind&.first == "cgroup"
          next unless version1 ? kind.last.split(",").include?("cpu") : kind&.first == "cgroup2"

          root, point = place[3, 2]&.map { |path| path.gsub(/\\(\d{3})/) { $1.oct.chr } }
          [root, point, version1] if point
        end
      end

      # "/user.slice" of "0::/user.slice" (version 2) or "4:cpu,cpuacct:/user.slice".
      def membership(version1)
        read("#{@process}/cgroup").each_line do |line|
          _, controllers, path = line.chomp.split(":", 3)
          return path if version1 ? controllers.to_s.split(",").include?("cpu") : controllers == ""
        end
        nil
      end

      def read(path)
        File.binread(path)
      rescue SystemCallError
        ""
      end
    end
  end
end

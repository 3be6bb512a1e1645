# frozen_string_literal: true

module Pitwall
  module Collect
    # The number of cores that this process may use at once: the cores that it may run on, limited by the quota of its
    # control groups. It runs in the measured process, so it uses core Ruby only.
    # @api private
    class Cores
      # One core for the program and one for the reader of its stacks.
      NEEDED = 2
      # Files with a control group's quota and period. In version 2 one file has both.
      V2 = ["cpu.max"].freeze
      V1 = %w[cpu.cfs_quota_us cpu.cfs_period_us].freeze
      private_constant :NEEDED, :V2, :V1

      # @return [Integer, nil] cores that the calling thread may run on; nil: unknown
      attr_reader :allowed

      # @param allowed [Integer, nil] as the reader
      # @param process [String] the process's folder in /proc
      #: (Integer?, ?process: String) -> void
      def initialize(allowed, process: "/proc/self")
        @allowed = allowed
        @process = process
      end

      # The CPU quota in cores: the lowest of its control groups and of the groups around them. nil: no limit.
      #: () -> Float?
      def quota = groups.filter_map { |folder, files| limit(folder, files) }.min

      # Why no core is spare for a reader of stacks; nil if one is.
      #: () -> String?
      def refusal
        return "the process may use 1 core" if allowed && allowed < NEEDED

        share = quota
        "its CPU quota is #{share.round(2)} cores" if share && share < NEEDED
      end

      private

      def limit(folder, files)
        quota, period = files.flat_map { |file| read(File.join(folder, file)).split }
        quota.to_i.fdiv(period.to_i) if quota.to_i.positive? && period.to_i.positive?
      end

      # The process's own groups, and the groups around them that are visible here.
      # @return [Array<Array(String, Array<String>)>] folders with the names of their files
      def groups
        mounts.flat_map do |root, point, version1|
          path = membership(version1)
          next [] unless path

          # A mount may show a part of the tree only. If the process's group lies outside of that part, the group at the
          # mount's root is the only one that is known.
          path = "#{path}/".start_with?("#{root}/") ? path.delete_prefix(root) : "" unless root == "/"
          parts = path.split("/").reject { |part| part.empty? || part == ".." }
          (0..parts.size).map { |n| [File.join(point, *parts.first(n)), version1 ? V1 : V2] }
        end
      end

      # The mounts of control groups with CPU limits.
      # @return [Array<Array(String, String, bool)>] the group at the mount's root, the folder, whether it is version 1
      def mounts
        read("#{@process}/mountinfo").each_line.filter_map do |line|
          place, kind = line.split(" - ", 2).map(&:split)
          version1 = kind&.first == "cgroup"
          next unless version1 ? kind.last.split(",").include?("cpu") : kind&.first == "cgroup2"

          root, point = place[3, 2]&.map { |path| path.gsub(/\\(\d{3})/) { $1.oct.chr } }
          [root, point, version1] if point
        end
      end

      # The process's group: "/user.slice" in the line "0::/user.slice" (version 2) or "4:cpu,cpuacct:/user.slice".
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

# frozen_string_literal: true

require "etc"

module Pitwall
  module Bench
    # The load of the machine during a measurement. A busy or throttled host makes a measurement doubtful.
    class Host
      # The core for the measured processes: the highest number that this process may use. Cores with low
      # numbers get most interrupts.
      # @return [Integer] -1 if there is one core only, or if the system does not tell
      #: () -> Integer
      def self.measuring_core
        list = read("/proc/self/status")[/^Cpus_allowed_list:\s*(\S+)/, 1].to_s
        allowed = list.split(",").flat_map do |range|
          first, last = range.split("-").map(&:to_i)
          (first..(last || first)).to_a
        end
        allowed.size > 1 ? allowed.max : -1
      end

      # Describes the machine.
      # @return [Hash] kernel, cpu, cores, memory_bytes, governor; without the facts that are unknown
      #: () -> Hash[String, untyped]
      def self.facts
        cpuinfo = read("/proc/cpuinfo")
        governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip
        { "kernel" => Etc.uname[:release], "cpu" => cpuinfo[/^model name\s*:\s*(.+)$/, 1], "cores" => Etc.nprocessors,
          "memory_bytes" => read("/proc/meminfo")[/^MemTotal:\s*(\d+) kB/, 1].to_i * 1024,
          "governor" => (governor unless governor.empty?) }.compact
      end

      # @api private
      def self.read(path)
        File.read(path)
      rescue SystemCallError
        ""
      end

      def initialize
        @before = reading
      end

      # Load since this object was made. Shares are shares of all the machine's CPU time, 0 to 1.
      #
      # load_before, load_after: one-minute load average at the beginning and at the end
      # others: share used by programs other than Pitwall and the programs that it measured
      # steal:  share taken by the hypervisor
      # idle:   share not used
      #: () -> Hash[String, Float]
      def readings
        now = reading
        ticks = now[:ticks].zip(@before[:ticks]).map { |after, before| after - before }
        total = ticks.sum.to_f
        return {} unless total.positive?

        user, nice, system, idle, iowait, irq, softirq, steal = ticks
        busy = user + nice + system + irq + softirq
        own = (now[:own] - @before[:own]) * 100
        { "load_before" => @before[:load], "load_after" => now[:load], "others" => [(busy - own) / total, 0.0].max,
          "steal" => steal.to_f / total, "idle" => (idle + iowait) / total }
      end

      private

      def reading
        times = Process.times
        { ticks: self.class.read("/proc/stat")[/^cpu\s+(.*)$/, 1].to_s.split.first(8).map(&:to_i),
          own: times.utime + times.stime + times.cutime + times.cstime, load: self.class.read("/proc/loadavg").to_f }
      end
    end
  end
end

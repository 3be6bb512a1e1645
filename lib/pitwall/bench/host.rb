# frozen_string_literal: true

require "etc"

module Pitwall
  module Bench
    # What the machine did beside the measurement: a busy or throttled host is the first reason for doubt.
    class Host
      # Of the core the measured processes run on: the highest number this process may use. The lowest ones get most interrupts.
      # @return [Integer] -1 where there is one core only, or the system doesn't say
      #: () -> Integer
      def self.measuring_core
        allowed = read("/proc/self/status")[/^Cpus_allowed_list:\s*(\S+)/, 1].to_s.split(",").flat_map do |range|
          first, last = range.split("-").map(&:to_i)
          (first..(last || first)).to_a
        end
        allowed.size > 1 ? allowed.max : -1
      end

      # What it is: kernel, cpu, cores, memory_bytes, governor.
      #: () -> Hash[String, untyped]
      def self.facts
        cpuinfo = read("/proc/cpuinfo")
        { "kernel" => Etc.uname[:release], "cpu" => cpuinfo[/^model name\s*:\s*(.+)$/, 1], "cores" => Etc.nprocessors,
          "memory_bytes" => read("/proc/meminfo")[/^MemTotal:\s*(\d+) kB/, 1].to_i * 1024,
          "governor" => read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip.then { |name| name unless name.empty? } }.compact
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

      # Since this object was made. Shares are of all the machine's CPU time, 0..1.
      # load: one-minute load average at the beginning and the end · others: CPU used by anything but Pitwall and what it measured ·
      # steal: taken by the hypervisor
      #: () -> Hash[String, Float]
      def readings
        now = reading
        ticks = now[:ticks].zip(@before[:ticks]).map { |after, before| after - before }
        total = ticks.sum.to_f
        return {} unless total.positive?

        user, nice, system, idle, iowait, irq, softirq, steal = ticks
        busy = user + nice + system + irq + softirq
        own = (now[:own] - @before[:own]) * 100
        { "load_before" => @before[:load], "load_after" => now[:load], "others" => [(busy - own) / total, 0.0].max, "steal" => steal.to_f / total,
          "idle" => (idle + iowait) / total }
      end

      private

      def reading
        times = Process.times
        { ticks: self.class.read("/proc/stat")[/^cpu\s+(.*)$/, 1].to_s.split.first(8).map(&:to_i), own: times.utime + times.stime + times.cutime + times.cstime,
          load: self.class.read("/proc/loadavg").to_f }
      end
    end
  end
end

# frozen_string_literal: true

require "open3"
require_relative "elf_functions"

module Benchmarks
  # The real perf beside a measured process: samples of the same run by the same clock's time.
  class PerfWitness
    EVENT = "task-clock"
    # A line of perf's for a function of the kernel.
    KERNEL = /\[(?:kernel|guest)[^\]]*\]\)?\s*\z|\(\[\w+\]\.ko/.freeze
    private_constant :EVENT, :KERNEL

    # Why perf does not record here, or nil.
    #: () -> String?
    def self.missing
      trial = %w[perf record -q -k mono -o /dev/null -e]
      _, output, status = Open3.capture3(*trial, EVENT, "--", "true")
      status.success? ? nil : "perf does not record here: #{output.lines.first.to_s.strip}"
    rescue Errno::ENOENT
      "perf is not installed"
    end

    # @param file [String] where perf writes
    #: (String, Integer) -> void
    def initialize(file, per_second)
      @file = file
      @per_second = per_second
      @objects = {}
    end

    # What the measured command begins with.
    #: () -> Array[String]
    def command = ["perf", "record", "-q", "-F", @per_second.to_s, "-e", EVENT, "-k", "mono", "-g", "-o", @file, "--"]

    # Samples of one thread from one moment to another, by function: kernel functions count for the function that called
    # the kernel, as a signal handler sees it.
    # @return [Hash] [object, function] => samples
    #: (tid: Integer, from_ns: Integer, to_ns: Integer) -> Hash[[String, String], Integer]
    def functions(tid:, from_ns:, to_ns:)
      found = Hash.new(0)
      each_sample(offsets: true) do |thread, time_ns, lines|
        next unless thread == tid && time_ns.between?(from_ns, to_ns)

        line = lines.find { |text| !KERNEL.match?(text) }
        found[line ? function(line) : ["[kernel]", "[kernel]"]] += 1
      end
      found
    end

    # Samples of the code of one shared object and of what it called, and of all threads but one, from one moment to
    # another.
    # @param tid [Integer] the thread that runs the program
    # @param object [String] the object's file name
    #: (String, tid: Integer, from_ns: Integer, to_ns: Integer) -> Integer
    def of_object(object, tid:, from_ns:, to_ns:)
      count = 0
      each_sample do |thread, time_ns, lines|
        next unless time_ns.between?(from_ns, to_ns)

        count += 1 if thread != tid || innermost(lines).any? { |line| line.end_with?("/#{object})") }
      end
      count
    end

    private

    # The function that runs in user mode and the two around it: a function that it calls, such as memcpy, may have no
    # frame pointer, and what a signal has interrupted comes after the handler's frames.
    def innermost(lines) = lines.grep_v(KERNEL).first(3)

    FIELDS = "tid,time,ip,sym,dso"
    private_constant :FIELDS

    # @param offsets [Boolean] the offset in the object behind its path: "(/lib/libc.so.6+0x1b7ad)". Older perfs write
    #   it in the place of the address.
    def each_sample(offsets: false)
      fields = offsets && offset_field? ? "#{FIELDS},dsoff" : FIELDS
      words = ["perf", "script", "--no-inline", "--no-demangle", "--ns", "-F", fields, "-i"]
      IO.popen([*words, @file, { err: File::NULL }]) do |io|
        io.each_line("\n\n") do |text|
          head, *lines = text.lines(chomp: true).reject(&:empty?)
          tid, time = head.to_s.split
          seconds, nanoseconds = time.to_s.delete_suffix(":").split(".")
          yield tid.to_i, (seconds.to_i * 1_000_000_000) + nanoseconds.to_i, lines unless lines.empty?
        end
      end
    end

    def offset_field?
      return @offset_field unless @offset_field.nil?

      _, output, = Open3.capture3("perf", "script", "-F", "#{FIELDS},dsoff", "-i", File::NULL)
      @offset_field = !output.include?("Invalid field")
    end

    # "   1b7ad _dl_start (/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2)": the offset in the object's file, and a
    # symbol; with dsoff "   7f756f1b7ad _dl_start (/usr/…/ld-linux-x86-64.so.2+0x1b7ad)". Of several names of a
    # function perf and Pitwall choose differently, so the offset decides.
    def function(line)
      ip, symbol, path, offset = line.strip.match(/\A(\h+) (.*) \(([^()]*?)(?:\+0x(\h+))?\)\z/).captures
      return [File.basename(path), symbol.delete_prefix("__vdso_")] unless File.file?(path)

      path = File.realpath(path)
      [File.basename(path), (@objects[path] ||= ElfFunctions.new(path)).name_at((offset || ip).hex)]
    end
  end
end

# frozen_string_literal: true

# A program with one line that can be left out: `PREDICT_REMOVED=1` leaves it out. `PREDICT_WORK=0.1` does a tenth of
# the work.
module Removable
  KEPT = ENV["PREDICT_REMOVED"] != "1"
  MARK = "# removable"

  # Runs the block so many times and prints, as JSON, the time that took and the collections there were.
  #: (Integer) { (Integer) -> void } -> void
  def self.times(count, &block)
    count = (count * Float(ENV.fetch("PREDICT_WORK", 1))).ceil
    before = figures
    count.times(&block)
    spent = figures.zip(before).map { |now, then_| now - then_ }
    puts format('{"wall_ns": %d, "cpu_ns": %d, "gc_ns": %d, "collections": %d, "objects": %d}', *spent)
  end

  def self.figures
    clocks = [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID]
    clocks.map { |clock| Process.clock_gettime(clock, :nanosecond) } +
      [GC.total_time, GC.count, GC.stat(:total_allocated_objects)]
  end
  private_class_method :figures

  # The number of the line that is marked, in a program.
  #: (String) -> Integer
  def self.line(path) = File.readlines(path).index { |line| line.rstrip.end_with?(MARK) } + 1
end

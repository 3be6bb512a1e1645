# frozen_string_literal: true

require "tmpdir"
require "pitwall/launch/perf"

# Whether the real perf records here. Tests of it are defined only then: containers often refuse it.
module RealPerf
  RECORDS = Dir.mktmpdir do |folder|
    file = File.join(folder, "perf.data")
    Pitwall::Launch::Perf.path &&
      system("perf", "record", "-q", "-g", "-e", "task-clock", "-F", "99", "-o", file, "--",
             RbConfig.ruby, "--disable=gems", "-e", "100_000.times { |i| i.to_s }", out: File::NULL, err: File::NULL) &&
      system("perf", "script", "-i", file, out: File::NULL, err: File::NULL)
  end

  # Defines a test where perf records.
  def perf_test(name, &block) = RECORDS ? define_method("test_#{name}", &block) : nil
end

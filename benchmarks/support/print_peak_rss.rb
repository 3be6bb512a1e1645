# frozen_string_literal: true

# Required by a process whose memory is measured (`ruby -r`). At its end, writes the largest resident size, in kB, to
# the descriptor named in BENCHMARKS_RSS_FD.
fd = Integer(ENV.delete("BENCHMARKS_RSS_FD"))
at_exit do
  line = File.foreach("/proc/self/status").find { |text| text.start_with?("VmHWM:") }
  IO.for_fd(fd).write(line[/\d+/]) if line
end

# frozen_string_literal: true

# Appends a line to the file WITNESS_REPORT when a test starts, and a line with its outcome: a test that ends the process
# has the first line only.
#
# The file is opened for each line: tests close descriptors and count those that are open.
module WitnessReport
  FILE = ENV.delete("WITNESS_REPORT")
  PROCESS = Process.pid
  OPEN = File.method(:open) # tests replace it

  module_function

  # @param word [String] "start", "pass", "fail", "error" or "skip"
  def tell(word, name, message = nil)
    return unless Process.pid == PROCESS # a child that a test forked

    line = [word, name, message].map { |text| text.to_s.lines.first.to_s.strip.tr("\t", " ")[0, 300] }.join("\t").scrub("?")
    OPEN.call(FILE, "a") { |file| file.syswrite("#{line}\n") }
  end
end

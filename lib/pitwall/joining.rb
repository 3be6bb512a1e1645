# frozen_string_literal: true

require "pitwall/record"

module Pitwall
  # Joins what perf saw of processes with what Pitwall recorded of them: native frames and kernel frames come below the
  # Ruby frames of the same thread at the same time.
  #
  # Reading order: joining/native_names.rb (a line of perf becomes a frame), joining/seen.rb (the samples of all
  # processes), joining/part.rb (a process's recording is written anew), joining/other_process.rb (a process without
  # Ruby). Which sample belongs to which row: analyse/perf/division.rb.
  module Joining
    autoload :NativeNames, "pitwall/joining/native_names"
    autoload :OtherProcess, "pitwall/joining/other_process"
    autoload :Part, "pitwall/joining/part"
    autoload :Seen, "pitwall/joining/seen"

    # samples: of all processes · joined: those that are in the recording · left_out: those for which there was no room
    # · problems: sentences
    Outcome = Struct.new(:samples, :joined, :left_out, :problems, keyword_init: true)

    module_function

    # Writes the parts of a recording anew, and adds a part for each process that has none.
    # @param folder [String] the folder of the parts
    # @param files [Array<String>] parts whose processes have ended
    # @param text [#read] what `perf script` prints
    # @param ignore [Array<Integer>] ids of processes that are no part of the command
    # @param window [Range] monotonic ns: when other processes count
    # @param period_ns [Integer] CPU time between two samples
    # @raise [BadRecording] perf's text can't be read
    #: (folder: String, files: Array[String], text: untyped, ignore: Array[Integer], window: Range[Integer?],
    #:  period_ns: Integer) -> Outcome
    def call(folder:, files:, text:, ignore:, window:, period_ns:)
      problems = []
      parts = files.filter_map do |file|
        Part.new(file)
      rescue BadRecording => error
        problems << "perf's frames are missing in a part: #{error.message}"
        nil
      end
      seen = Seen.new(parts, ignore: ignore)
      seen.read(text)
      joined = parts.sum { |part| part.join(seen, problems) }
      joined += others(folder, seen, parts, window, period_ns)
      Outcome.new(samples: seen.samples, joined: joined, left_out: seen.left_out, problems: problems)
    end

    # Processes that perf saw and that recorded nothing: other programs, Rubies that Pitwall can't record.
    def others(folder, seen, parts, window, period_ns)
      (seen.pids - parts.flat_map(&:pids)).sum do |pid|
        OtherProcess.new(seen, pid, window: window, period_ns: period_ns).write(File.join(folder, "#{pid}-0.pit"))
      end
    end
    private_class_method :others
  end
end

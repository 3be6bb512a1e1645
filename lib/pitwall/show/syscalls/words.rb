# frozen_string_literal: true

require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Sentences shared by all views of system calls.
    module SyscallsWords
      # Format of a log → words.
      FORMATS = { "plain" => "call<TAB>path log", "strace" => "strace log", "dtruss" => "dtruss log",
                  "bpftrace" => "bpftrace log", "recording" => "recorded" }.freeze
      # System calls that a recording never contains.
      UNSEEN = "Ruby's own start before Pitwall is loaded (some 2,000 calls), children between fork and exec, " \
               "programs that are not Ruby"
      # Sizes up to this one have a row each in a histogram. Larger sizes share rows, each twice as wide as the last.
      SINGLE = 4
      private_constant :FORMATS, :SINGLE

      module_function

      # The sentence about system calls that a recording doesn't contain; nil for logs of other tools.
      #: (String) -> String?
      def unseen(format) = format == "recording" ? "Not seen: #{UNSEEN}." : nil

      # A path's bytes as safe text.
      #: (String) -> String
      def path(bytes)
        valid = bytes.encoding == Encoding::UTF_8 && bytes.valid_encoding?
        Text.safe(valid ? bytes : bytes.dup.force_encoding(Encoding::UTF_8).scrub("?"))
      end

      # The name, the format and the sums: ["build.log", "strace log", "443,267 calls (112,300 failed)", …].
      #: (Analyse::SyscallReport, String, String) -> Array[String]
      def title(report, name, format)
        failed = " (#{Units.count(report.failed)} failed)" if report.failed.positive?
        kind = format == "recording" ? "processes" : "processes and threads"
        [path(name), FORMATS.fetch(format, format), "#{Units.things(report.calls, "call")}#{failed}",
         ("#{Units.duration(report.ns)} in them" if report.timed?),
         ("#{Units.count(report.processes)} #{kind}" if report.processes > 1)].compact
      end

      # The part of the calls that patterns explain:
      # "93.1% explained: 412,700 calls in 51,000 markers; 30,567 not"
      #: (Analyse::SyscallReport) -> String
      def explained(report)
        markers = report.passes.select { |pass| pass.explained.positive? }.sum(&:markers)
        "#{Units.percent(report.explained, report.calls)} explained: #{Units.things(report.explained, "call")} " \
          "in #{Units.things(markers, "marker")}; #{Units.count(report.unexplained)} not"
      end

      # The saving of a pattern's fix: "saves 120,000 calls (27.1%), 310 ms", "saves at most…".
      #: (Analyse::SyscallReport, Analyse::SyscallReport::Pass) -> String
      def saves(report, pass)
        time = ", #{Units.duration(pass.saved_ns)}" if report.timed? && pass.saved_ns.positive?
        "saves #{"at most " if pass.saves_at_most}#{Units.things(pass.saved_calls, "call")} " \
          "(#{Units.percent(pass.saved_calls, report.calls)})#{time}"
      end

      # The line above the findings: "what a fix would save (at most: …)".
      #: (Array[Analyse::SyscallReport::Pass]) -> String
      def saving(findings)
        at_most = " (at most: if all of it could go; what is needed stays)" if findings.any?(&:saves_at_most)
        "what a fix would save#{at_most}"
      end

      # The rows of a histogram of markers' sizes: [["2", 10], ["5–8", 3]…].
      # @param sizes pairs of a size and its number of markers
      #: (Array[[Integer, Integer]]) -> Array[[String, Integer]]
      def histogram(sizes)
        rows = Hash.new(0)
        sizes.each do |size, markers|
          top = size <= SINGLE ? size : 1 << (size - 1).bit_length
          rows[top] += markers
        end
        rows.sort.map do |top, markers|
          [top <= SINGLE ? top.to_s : "#{Units.count(top / 2 + 1)}–#{Units.count(top)}", markers]
        end
      end

      # Patterns whose markers differ in size. Only these have a histogram.
      #: (Analyse::SyscallReport) -> Array[Analyse::SyscallReport::Pass]
      def of_many_sizes(report) = report.passes.select { |pass| pass.sizes.size > 1 && pass.markers > 1 }

      # Notes about how the log was read.
      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::SyscallReport, untyped) -> Array[String]
      def notes(report, hints)
        notes = []
        notes << "no file-system calls after Ruby's own start (#{hints.start})" if report.calls.zero?
        notes << "there were too many paths to tell all apart: the rarer ones stand for their folders" if report.folded?
        if report.patterns.study_only?
          notes << "read with the study's patterns, as the log has neither results nor flags; " \
                   "#{hints.patterns}"
        end

        notes
      end
    end
  end
end

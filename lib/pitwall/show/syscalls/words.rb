# frozen_string_literal: true

require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What all views of system calls say alike.
    module SyscallsWords
      FORMATS = { "plain" => "call<TAB>path log", "strace" => "strace log", "dtruss" => "dtruss log", "bpftrace" => "bpftrace log", "recording" => "recorded" }.freeze
      # What is never in a recording.
      UNSEEN = "Ruby's own start before Pitwall is loaded (some 2,000 calls), children between fork and exec, programs that are not Ruby"
      NONE = "no file-system calls after Ruby's own start (--start counts those)"
      # Widths of a histogram's rows: up to 4 each size, then doubling.
      SINGLE = 4
      private_constant :FORMATS, :SINGLE

      module_function

      # The sentence about what no recording holds; nil of logs, which are another's.
      #: (String) -> String?
      def unseen(format) = format == "recording" ? "Not seen: #{UNSEEN}." : nil

      # Somebody's bytes as text.
      #: (String) -> String
      def path(bytes) = Text.safe((bytes.encoding == Encoding::UTF_8 && bytes.valid_encoding? ? bytes : bytes.dup.force_encoding(Encoding::UTF_8).scrub("?")))

      # "strace log", "443,267 calls (112,300 failed)", …
      #: (Analyse::SyscallReport, String, String) -> Array[String]
      def title(report, name, format)
        [path(name), FORMATS.fetch(format, format),
         "#{Units.things(report.calls, "call")}#{" (#{Units.count(report.failed)} failed)" if report.failed.positive?}",
         ("#{Units.duration(report.ns)} in them" if report.timed?),
         ("#{Units.count(report.processes)} processes#{" and threads" unless format == "recording"}" if report.processes > 1)].compact
      end

      # "93.1% explained: 412,700 calls in 51,000 markers; 30,567 calls are not"
      #: (Analyse::SyscallReport) -> String
      def explained(report)
        markers = report.passes.select { |pass| pass.explained.positive? }.sum(&:markers)
        "#{Units.percent(report.explained, report.calls)} explained: #{Units.things(report.explained, "call")} in #{Units.things(markers, "marker")}; #{Units.count(report.unexplained)} not"
      end

      # "saves 120,000 calls (27.1%), 310 ms", "saves at most…"
      #: (Analyse::SyscallReport, Analyse::SyscallReport::Pass) -> String
      def saves(report, pass)
        time = ", #{Units.duration(pass.saved_ns)}" if report.timed? && pass.saved_ns.positive?
        "saves #{"at most " if pass.saves_at_most}#{Units.things(pass.saved_calls, "call")} (#{Units.percent(pass.saved_calls, report.calls)})#{time}"
      end

      # What stands above the findings: "what a fix would save (at most: …)"
      #: (Array[Analyse::SyscallReport::Pass]) -> String
      def saving(findings) = "what a fix would save#{" (at most: if all of it could go; what is needed stays)" if findings.any?(&:saves_at_most)}"

      # Sizes of markers in rows: [["2", 10], ["5–8", 3]…]
      #: (Array[[Integer, Integer]]) -> Array[[String, Integer]]
      def histogram(sizes)
        rows = Hash.new(0)
        sizes.each do |size, markers|
          top = size <= SINGLE ? size : 1 << (size - 1).bit_length
          rows[top] += markers
        end
        rows.sort.map { |top, markers| [top <= SINGLE ? top.to_s : "#{Units.count(top / 2 + 1)}–#{Units.count(top)}", markers] }
      end

      # Patterns whose size tells something: those that differ.
      #: (Analyse::SyscallReport) -> Array[Analyse::SyscallReport::Pass]
      def of_many_sizes(report) = report.passes.select { |pass| pass.sizes.size > 1 && pass.markers > 1 }

      #: (Analyse::SyscallReport) -> Array[String]
      def notes(report)
        notes = []
        notes << NONE if report.calls.zero?
        notes << "there were too many paths to tell all apart: the rarer ones stand for their folders" if report.folded?
        notes << "read with the study's patterns, as the log has neither results nor flags; --patterns all looks for the others too" if report.patterns.study_only?
        notes
      end
    end
  end
end

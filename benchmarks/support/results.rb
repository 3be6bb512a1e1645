# frozen_string_literal: true

require "fileutils"
require "json"

module Benchmarks
  # Keeps the figures. RESULTS.md has one section for each benchmark and Ruby, replaced by the next run. The raw values
  # of each run in a file of its own, so that any figure can be computed again.
  module Results
    FOLDER = File.expand_path("..", __dir__)
    INTRODUCTION =
      "# Results\n\n" \
      "Written by `benchmarks/run --write`; each section names the command that makes it again. " \
      "Profilers run interleaved in one\n" \
      "run, each in a fresh process. Ratios travel between machines, absolute times do not. Raw values: `runs/`.\n"
    private_constant :FOLDER, :INTRODUCTION

    module_function

    #: (Result, ?folder: String) -> void
    def write(result, folder: FOLDER)
      path = File.join(folder, "RESULTS.md")
      File.write(path, replace(File.exist?(path) ? File.read(path) : INTRODUCTION, result.heading, result.to_markdown))
      FileUtils.mkdir_p(File.join(folder, "runs"))
      File.write(File.join(folder, "runs", run_name(result)), "#{JSON.generate(raw(result))}\n")
    end

    # The text with the section of that heading replaced, or added at the end.
    #: (String, String, String) -> String
    def replace(text, heading, section)
      first, *sections = text.split(/^(?=## )/)
      sections.reject! { |old| old.start_with?("## #{heading}\n") }
      "#{[first, *sections, section].map(&:strip).join("\n\n")}\n"
    end

    def run_name(result)
      date = result.started_at.strftime("%Y-%m-%d")
      words = [date, result.name.tr("/", "-"), Result.ruby.sub(" --", "-"), *result.cases]
      words.join("-").concat(".json")
    end

    def raw(result)
      { name: result.name, command: result.command, started_at: result.started_at.utc.strftime("%FT%TZ"),
        machine: result.machine, goals: result.goals.map(&:to_h), data: result.data }
    end
  end
end

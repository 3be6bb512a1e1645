# frozen_string_literal: true

# Lists what was skipped, and why, above minitest's summary, which stays the last line. With PITWALL_NO_SKIPS=1, as in
# continuous integration, a skip is a failure.
module SkipList
  # Before the other reporters see a result.
  class Judge < Minitest::AbstractReporter
    def record(result)
      return unless result.skipped?

      result.failures.map! do |skip|
        failure = Minitest::Assertion.new("skipped, where nothing may be: #{skip.message}")
        failure.set_backtrace(skip.backtrace)
        failure
      end
    end
  end

  # Part of minitest's SummaryReporter.
  module Listing
    def summary
      skipped = results.select(&:skipped?).group_by { |result| result.failure.message }
      return super if skipped.empty? || options[:verbose]

      lines = skipped.map { |why, tests| "  #{tests.size} × #{why} (#{tests.map(&:class_name).uniq.first(3).join(", ")})" }
      "Skipped:\n#{lines.sort.join("\n")}\n\n#{super}"
    end
  end

  def self.strict? = !ENV["PITWALL_NO_SKIPS"].to_s.empty?
end

ENV["MT_NO_SKIP_MSG"] ||= "1" # it would follow the summary
Minitest::SummaryReporter.prepend(SkipList::Listing)

module Minitest
  extensions << "skip_list"

  def self.plugin_skip_list_init(_options)
    reporter.reporters.unshift(SkipList::Judge.new) if SkipList.strict?
  end
end

# frozen_string_literal: true

require "cgi"
require "json"
require "pitwall/analyse"
require "pitwall/experiment"
require "pitwall/show"

module Pitwall
  module CLI
    # The part of `compare` that judges `--fail-if`: nothing is measured where the change can't reach what is measured,
    # and a gate fails only if a second run says the same.
    module ConfirmedGate
      # Metrics that runs of their own count. They were repeated already.
      COUNTED = %w[instructions fs_calls retained retained_bytes].freeze
      private_constant :COUNTED

      private

      # Ends the command if the gate can't fail, because no file that is measured has changed.
      # @return [Integer, nil] the exit status; nil where there is something to measure
      def skip_unreachable(workspace, sides)
        gate = @options[:fail_if]
        return unless gate&.relative_only?

        paths = workspace.changed_paths(sides)
        return if paths.nil? || workspace.reaching(paths, code: sides.first.code).any?

        files = "only #{paths.first(4).join(", ")}#{" and more" if paths.size > 4} changed"
        files = "no file differs" if paths.empty?
        reason = "not measured: #{files}, which can't change what is measured"
        publish(skipped(reason, paths))
        @err.puts("pitwall: #{Show::Text.line(reason)}") if @options[:out] || @options.fetch(:format, "text") == "json"
        Status::OK
      end

      def skipped(reason, paths)
        line = Show::Text.line(reason)
        case @options[:format]
        when "json"
          why = { "reason" => line, "files" => paths.map { |path| Show::Text.safe(path) } }
          JSON.generate("schema" => Show::CompareJson::SCHEMA, "results" => [], "skipped" => why)
        when "markdown" then Show::Markdown.text(line.sub(/\A./, &:upcase))
        when "html" then "<!doctype html><meta charset=\"utf-8\"><title>pitwall</title><p>#{CGI.escapeHTML(line)}</p>"
        else line.sub(/\A./, &:upcase)
        end
      end

      # Judges the conditions, and measures what fails a second time.
      # @yield [Array<String>] names of cases; measures them again and returns the report, nil after Ctrl-C
      def judge_twice(report)
        gate = @options[:fail_if]
        results = gate.conditions.map do |condition|
          found = report.effects.select { |effect| condition.holds_for?(effect) { estimate(report, effect) } }
          Analyse::GateResult.new(condition: condition.text, found: found)
        end
        report.gate = results
        return if results.any? { |result| result.found.any? && certain?(result) }

        doubtful = results.flat_map(&:found)
        return if doubtful.empty?

        second = yield(doubtful.map(&:name).uniq)
        confirm(results, second, gate.conditions) if second
      end

      # Whether a second run is pointless: counts that repeat exactly, and doubt itself.
      def certain?(result)
        return true if result.condition == "undecided"

        result.found.any? { |effect| effect.exact || COUNTED.include?(effect.metric) }
      end

      def confirm(results, second, conditions)
        results.zip(conditions).each do |result, condition|
          next if result.found.empty?

          result.again = result.found.map do |effect|
            second.effects.find { |each| %i[name side metric].all? { |field| each[field] == effect[field] } }
          end
          result.confirmed = result.found.zip(result.again).filter_map do |effect, again|
            effect if again && condition.holds_for?(again) { estimate(second, again) }
          end
        end
      end
    end
  end
end

# frozen_string_literal: true

require "json"
require "pitwall/show/measured/json_values"
require "pitwall/show/syscalls/view"

module Pitwall
  module Show
    # System calls as a JSON object. Invalid bytes of paths are replaced by ?.
    # In logs without times every ns is null. Without recorded stacks `lines`, `features` and `phases` are empty.
    class SyscallsJson < SyscallsView
      SCHEMA = "pitwall/syscalls-1"
      CHANGE = "pitwall/syscalls-diff-1"
      TOP = 100 # rows of a list, by default
      private_constant :TOP

      # The JSON text about the change between two logs, with both logs' objects.
      # @param before [Hash] the first log: arguments of {initialize}
      # @param after [Hash] the second log
      #: (Hash[Symbol, untyped], Hash[Symbol, untyped], ?limit: Integer?) -> String
      def self.change(before, after, limit: nil)
        change = Analyse::SyscallChange.new(before[:report], after[:report])
        figures = ->(row) { { "before" => row.before, "after" => row.after, "change" => row.change } }
        rows = ->(list) { list.map { |row| { "name" => row.name, **figures.(row) } } }
        lines = change.lines.map do |row|
          { "path" => SyscallsWords.path(row.name[0]), "line" => row.name[1], **figures.(row) }
        end
        passes = rows.(change.passes).zip(change.passes).map do |object, row|
          { **object, "markers_before" => row.markers_before, "markers_after" => row.markers_after }
        end
        object = { "schema" => CHANGE, "totals" => rows.(change.totals), "passes" => passes,
                   "by_call" => rows.(change.by_call), "gems" => rows.(change.by_gem),
                   "lines" => lines.first(limit || TOP), "before" => new(**before, limit: limit).value,
                   "after" => new(**after, limit: limit).value }
        JSON.generate(JsonValues.clean(object))
      end

      #: (?limit: Integer?, **untyped) -> void
      def initialize(limit: nil, **shared) = super(limit: limit || TOP, **shared)

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s = JSON.generate(JsonValues.clean(value))

      # The JSON object.
      #: () -> Hash[String, untyped]
      def value
        log = { "name" => @name, "format" => @format, "processes" => @report.processes, "stacks" => @report.stacks? }
        { "schema" => SCHEMA, "calls" => @report.calls, "explained" => @report.explained,
          "unexplained" => @report.unexplained, "failed" => @report.failed, "ns" => ns(@report.ns),
          "markers" => @report.markers, "passes" => @report.passes.map { |pass| pass(pass) },
          "findings" => @report.findings.map(&:name), "by_call" => @report.by_call.map { |row| by(row, "call") },
          "rest" => rest, "lines" => lines(@report.lines), "gems" => gems.map { |row| by(row, "gem") },
          "features" => places(:feature), "phases" => places(:phase), "log" => log,
          "notes" => SyscallsWords.notes(@report, @hints),
          "not_seen" => (SyscallsWords::UNSEEN if @format == "recording"), "warnings" => @warnings.map(&:to_h) }
      end

      private

      def ns(value) = @report.timed? ? value : nil

      def pass(pass)
        { "name" => pass.name, "explanation" => pass.pattern.explanation, "advice" => pass.pattern.advice,
          "how" => pass.pattern.how, "markers" => pass.markers, "calls" => pass.calls,
          "average" => pass.average, "explained" => pass.explained, "left" => pass.left, "ns" => ns(pass.ns),
          "saved_calls" => pass.saved_calls, "saved_ns" => ns(pass.saved_ns), "saves_at_most" => pass.saves_at_most,
          "sizes" => pass.sizes.to_h { |size, markers| [size.to_s, markers] },
          "groups" => pass.groups(@limit).map { |row| group(row) },
          "lines" => @report.stacks? ? lines(@report.lines_of(pass)) : [] }
      end

      def group(row)
        { "path" => SyscallsWords.path(row.path), "markers" => row.count, "calls" => row.calls, "ns" => ns(row.ns) }
      end

      def rest
        left = @report.calls - @report.passes.sum(&:calls)
        rows = @report.by_call.map { |row| { "call" => row.name, "calls" => row.calls - row.explained } }
        rows = rows.select { |row| row["calls"].positive? }
        { "calls" => left, "by_call" => rows.sort_by { |row| [-row["calls"], row["call"]] },
          "by_path" => @report.rest_by_path(@limit).map { |row| left(row) },
          "by_name" => @report.rest_by_name(@limit).map { |row| left(row) } }
      end

      def left(row) = { "path" => SyscallsWords.path(row.path), "calls" => row.calls, "ns" => ns(row.ns) }

      def lines(rows)
        rows.map do |line|
          { "path" => line.path, "line" => line.line, "calls" => line.calls, "ns" => ns(line.ns),
            "explained" => line.explained, "pattern" => line.pattern, "gem" => line.gem }
        end
      end

      def gems = @report.stacks? ? @report.by(:gem) : @report.by_gem_of_path

      def places(key) = @report.by(key).map { |row| by(row, key.to_s) }

      def by(row, key) = { key => row.name, "calls" => row.calls, "ns" => ns(row.ns), "explained" => row.explained }
    end
  end
end

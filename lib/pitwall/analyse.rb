# frozen_string_literal: true

module Pitwall
  # Pure functions over recordings: no IO, clock, environment or chance. Each part loads when it is first named.
  module Analyse
    autoload :BenchCases, "pitwall/analyse/bench_cases"
    autoload :BenchReport, "pitwall/analyse/bench_report"
    autoload :BenchSummary, "pitwall/analyse/bench_summary"
    autoload :CallTree, "pitwall/analyse/call_tree"
    autoload :CallTreeBuilder, "pitwall/analyse/call_tree_builder"
    autoload :Comparison, "pitwall/analyse/comparison"
    autoload :ComparisonReport, "pitwall/analyse/comparison_report"
    autoload :Effect, "pitwall/analyse/effect"
    autoload :Estimate, "pitwall/analyse/estimate"
    autoload :Flat, "pitwall/analyse/flat"
    autoload :Folding, "pitwall/analyse/folding"
    autoload :Growth, "pitwall/analyse/growth"
    autoload :IdleThreads, "pitwall/analyse/idle_threads"
    autoload :Instructions, "pitwall/analyse/instructions"
    autoload :Lines, "pitwall/analyse/lines"
    autoload :MeasurementWarnings, "pitwall/analyse/measurement_warnings"
    autoload :MethodInfo, "pitwall/analyse/method_info"
    autoload :MethodMatch, "pitwall/analyse/method_match"
    autoload :Neighbours, "pitwall/analyse/neighbours"
    autoload :Outline, "pitwall/analyse/outline"
    autoload :ProfileChange, "pitwall/analyse/profile_change"
    autoload :Redaction, "pitwall/analyse/redaction"
    autoload :Report, "pitwall/analyse/report"
    autoload :Selection, "pitwall/analyse/selection"
    autoload :Sequential, "pitwall/analyse/sequential"
    autoload :States, "pitwall/analyse/states"
    autoload :Statistics, "pitwall/analyse/statistics"
    autoload :Strings, "pitwall/analyse/strings"
    autoload :Summary, "pitwall/analyse/summary"
    autoload :Sweep, "pitwall/analyse/sweep"
    autoload :Threads, "pitwall/analyse/threads"
    autoload :Warning, "pitwall/analyse/warning"
  end
end

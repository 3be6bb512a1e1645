# frozen_string_literal: true

module Pitwall
  # Turns analysis values into strings. No files, no terminal: width, colours and source text are handed in.
  module Show
    autoload :AllocationsJson, "pitwall/show/allocations_json"
    autoload :AllocationsMarkdown, "pitwall/show/allocations_markdown"
    autoload :AllocationsText, "pitwall/show/allocations_text"
    autoload :Audit, "pitwall/show/audit"
    autoload :BenchJson, "pitwall/show/bench_json"
    autoload :BenchMarkdown, "pitwall/show/bench_markdown"
    autoload :BenchText, "pitwall/show/bench_text"
    autoload :CompareJson, "pitwall/show/compare_json"
    autoload :CompareMarkdown, "pitwall/show/compare_markdown"
    autoload :CompareText, "pitwall/show/compare_text"
    autoload :WhyText, "pitwall/show/why_text"
    autoload :WhyJson, "pitwall/show/why_json"
    autoload :CallsView, "pitwall/show/calls_view"
    autoload :FlatView, "pitwall/show/flat_view"
    autoload :GCCostJson, "pitwall/show/gc_cost_json"
    autoload :GCCostView, "pitwall/show/gc_cost_view"
    autoload :GCView, "pitwall/show/gc_view"
    autoload :HeaderView, "pitwall/show/header_view"
    autoload :JsonReport, "pitwall/show/json_report"
    autoload :LinesView, "pitwall/show/lines_view"
    autoload :Location, "pitwall/show/location"
    autoload :MarkdownReport, "pitwall/show/markdown_report"
    autoload :NeighboursView, "pitwall/show/neighbours_view"
    autoload :Plain, "pitwall/show/plain"
    autoload :Table, "pitwall/show/table"
    autoload :Text, "pitwall/show/text"
    autoload :TextReport, "pitwall/show/text_report"
    autoload :ThreadsView, "pitwall/show/threads_view"
    autoload :TreeView, "pitwall/show/tree_view"
    autoload :Units, "pitwall/show/units"

    # One file a format.
    module Export
      autoload :Callgrind, "pitwall/show/export/callgrind"
      autoload :Collapsed, "pitwall/show/export/collapsed"
      autoload :Speedscope, "pitwall/show/export/speedscope"
    end
  end
end

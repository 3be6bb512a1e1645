# frozen_string_literal: true

module Pitwall
  # Pure functions over recordings: no IO, clock, environment or chance. Each part loads when it is first named.
  module Analyse
    autoload :CallTree, "pitwall/analyse/call_tree"
    autoload :CallTreeBuilder, "pitwall/analyse/call_tree_builder"
    autoload :Flat, "pitwall/analyse/flat"
    autoload :Folding, "pitwall/analyse/folding"
    autoload :IdleThreads, "pitwall/analyse/idle_threads"
    autoload :Lines, "pitwall/analyse/lines"
    autoload :MethodInfo, "pitwall/analyse/method_info"
    autoload :MethodMatch, "pitwall/analyse/method_match"
    autoload :Neighbours, "pitwall/analyse/neighbours"
    autoload :Outline, "pitwall/analyse/outline"
    autoload :Redaction, "pitwall/analyse/redaction"
    autoload :Report, "pitwall/analyse/report"
    autoload :Selection, "pitwall/analyse/selection"
    autoload :States, "pitwall/analyse/states"
    autoload :Strings, "pitwall/analyse/strings"
    autoload :Summary, "pitwall/analyse/summary"
    autoload :Threads, "pitwall/analyse/threads"
  end
end

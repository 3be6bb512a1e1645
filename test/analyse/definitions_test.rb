# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"

class DefinitionsTest < Minitest::Test
  Segment = Struct.new(:alone_ns, :cache_changes, :definition_costs)
  NAME = "(anonymous module made at routes.rb:5)"

  # What Definitions asks of Caches.
  class Changes
    def after = Pitwall::Analyse::Caches::After.new
    def place(_segment, _node_id) = ["routes.rb", 7]
  end

  def change(kind, subject, at_ns)
    Pitwall::Record::CacheChange.new(1, at_ns, kind, 1, subject, 0, 0, 0, 0, 0, 0, 0, 0)
  end

  def cost(entries, ns)
    Pitwall::Record::DefinitionCost.new(name: NAME, kind: "module", reaches: entries, paths: entries, entries: entries,
                                        repeated: 0, ns: ns, not_measured: nil, counters: {})
  end

  # Three modules with one name: each of the four definitions counts once, at the widest module's cost at most.
  def test_modules_that_share_a_name
    changes = Array.new(4) { |i| change("method_added", "#{NAME}#m", 10 + i) }
    changes << change("module_included", "#{NAME} in Shop", 12)
    found = Pitwall::Analyse::Definitions.new([Segment.new(100, changes, [cost(1, 500), cost(3, 900), cost(2, 700)])],
                                              Changes.new)
    assert_equal([[4, 2, (2 * 900) + (2 * 100)]], found.rows.map { |row| [row.definitions, row.late, row.total_ns] })
    assert_equal([[7, 4, 2000]], found.lines.map { |line| [line.line, line.definitions, line.total_ns] })
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/cli/support/boot_runs"
require "pitwall/cli/support/lazy_gems_search"
require "pitwall/show/boot/lazy_gems_view"

class LazyGemsViewTest < Minitest::Test
  Entry = Pitwall::Fastboot::LazyList::Entry

  def entry(name, milliseconds, constants: [], changes: [])
    Entry.new(name: name, ns: milliseconds * 1_000_000, constants: constants, changes: changes, files: [])
  end

  FEW = [["Object", "Rouge"]].freeze
  MANY = [["Object", "A"], ["B::C", "D"], ["Object", "E\e[31m"], ["Object", "F"], ["Object", "G"]].freeze
  CHANGES = ["defines active_support_execution_state in ActiveSupport::IsolatedExecutionState::Something", "two",
             "three"].freeze

  def two = [entry("rouge", 160, constants: FEW), entry("a-gem-with-a-name-of-many-letters", 3, constants: MANY)]

  def found(waiting: two)
    loaded = [entry("grape", 100, changes: CHANGES), entry("light", 0, changes: ["takes less than 1 ms"])]
    Pitwall::CLI::LazyGemsSearch::Found.new(path: "/cache/lazy-gems-0123456789abcdef", waiting: waiting,
                                            used: [entry("prawn", 27)], loaded: loaded)
  end

  def test_lines_fit
    [60, 100, 160].each do |width|
      lines = Pitwall::Show::LazyGemsView.new(found).lines(width: width)
      assert_empty lines.select { |line| line.size > width }, "#{width} columns"
      text = lines.join("\n")
      assert_match(/\A2 of 5 gems wait until they are used: 163 ms of this boot\n +160 ms  rouge +Rouge\n/, text)
      assert_match(/  A, B::C::D, E\\e\[31m, 2 more$/, text)
      assert_match(/27\.0 ms  prawn$/, text)
      assert_match(/ 100 ms  grape .*\btwo; 1\s+more$/m, text)
      refute_match(/light/, text)
      assert_match(%r{/cache/lazy-gems-0123456789abcdef: boots}, text)
    end
  end

  def test_no_gem_waits
    text = Pitwall::Show::LazyGemsView.new(found(waiting: [])).lines(width: 100).join("\n")
    assert_match(/\A0 of 3 gems wait until they are used: 0 s of this boot\n/, text)
    assert_match(/^no list was written\z/, text)
    none = Pitwall::CLI::LazyGemsSearch::Found.new(path: "/x", waiting: [], used: [], loaded: [])
    assert_equal ["Bundler.require loads no gem in this boot, so no gem can wait", "", "no list was written"],
                 Pitwall::Show::LazyGemsView.new(none).lines(width: 100)
  end
end

# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/command_line"
require "pitwall/minitest"

# Tests that fail when a block empties caches of the VM: which changes are found and allowed, what the message says.
class InvalidationsTest < Minitest::Test
  include CommandLine

  def of(**options, &block) = Pitwall::Invalidations.of("assert_no_invalidations", **options, &block)

  def test_quiet_blocks_have_no_changes
    list = [3, 1, 2]
    assert_equal true, assert_no_invalidations { list.sort.map(&:to_s).join }
    assert_no_invalidations { Thread.new { list.sum }.join }
  end

  def test_the_message_names_kind_subject_and_line
    line = __LINE__ + 1
    error = assert_raises(Minitest::Assertion) { assert_no_invalidations { 3.times { String.new.extend(Comparable) } } }
    assert_match(/\AExpected no change that empties caches of the VM, but there were \d+:$/, error.message)
    assert_match(/^  3  object_extended  Comparable in a String  test\/invalidations_test\.rb:#{line}$/, error.message)
  end

  def test_the_first_run_counts_only_without_a_warm_up
    made = nil
    once = -> { made ||= Class.new }
    assert_includes of(warmup: 0, &once).map(&:kind), "class_made"
    assert_empty of(&once)
    assert_includes of { Class.new }.map(&:kind), "class_made"
  end

  def test_changes_may_be_allowed
    change = -> { Class.new { def hello = 1 } }
    kinds = of(&change).map(&:kind)
    assert_equal %w[class_made method_added], kinds.grep(/made|added/).uniq.sort
    assert_equal %w[method_added], of(allow: :classes_made, &change).map(&:kind).grep(/made|added/)
    assert_empty of(allow: kinds.map(&:to_sym), &change).map(&:subject)
    assert_equal %w[class_made], of(allow: [/#hello\z/], &change).map(&:kind)
    assert_equal %w[class_made], of(allow: "*#hello", &change).map(&:kind)
    assert_empty of(allow: "*", &change)
  end

  def test_bad_input_gets_one_line
    { { allow: :classes } => /\Aallow: :classes: no such change; there are constants_changed, .*shape_made\z/,
      { allow: 3 } => /\Aallow: 3: a Symbol/, { warmup: -1 } => /\Awarmup -1: must be/ }.each do |options, words|
      assert_match(words, assert_raises(Pitwall::UsageError) { of(**options) { 1 } }.message)
    end
    assert_match(/needs a block/, assert_raises(Pitwall::UsageError) { assert_no_invalidations }.message)
  end

  def test_within_another_recording_there_is_one_error_and_nothing_is_left
    before = Dir.glob("#{ENV["TMPDIR"] || "/tmp"}/pitwall-#{Process.pid}-*")
    nested = assert_raises(Pitwall::StateError) do
      assert_no_invalidations(warmup: 0) { assert_no_invalidations { flunk "must not run" } }
    end
    assert_match(/\Aassert_no_invalidations records the process, which is recorded already: one such/, nested.message)
    assert_raises(Pitwall::StateError) { Pitwall.caches(record: file("a.pit")) { of { flunk "must not run" } } }
    assert_raises(Pitwall::StateError) do
      of(warmup: 0) { Thread.new { of { flunk "must not run" } }.tap { |one| one.report_on_exception = false }.value }
    end
    assert_raises(ZeroDivisionError) { of { 1 / 0 } }
    assert_equal before, Dir.glob("#{ENV["TMPDIR"] || "/tmp"}/pitwall-#{Process.pid}-*")
    refute Pitwall.recording?
  end

  def rspec
    home = File.join(Checkout::GEMS, RUBY_ENGINE, RbConfig::CONFIG["ruby_version"])
    @env = { "GEM_HOME" => home, "GEM_PATH" => home }
    [RUBY, "-I#{Checkout::ROOT}/lib", Dir[File.join(home, "bin/rspec")].fetch(0)]
  end

  def test_rspec
    spec = file("cache_spec.rb")
    File.write(spec, <<~RUBY)
      require "pitwall/rspec"
      RSpec.describe "caches" do
        it("passes") { expect { [1].sum }.not_to invalidate_caches }
        it("allows") { expect { Class.new }.not_to invalidate_caches(allow: :classes_made) }
        it("finds") { expect { Class.new }.to invalidate_caches.once }
        it("fails") { expect { Class.new }.not_to invalidate_caches }
        it("lacks") { expect { [1].sum }.to invalidate_caches }
      end
    RUBY
    command = rspec
    run = capture(@env, *command, spec)
    assert_match(/5 examples, 2 failures/, run.out, run.err)
    assert_match(/but there was 1:\n +1  class_made .*cache_spec\.rb:6$/, run.out)
    assert_match(/Expected a change that empties caches of the VM, but there was none\./, run.out)
  end

  def test_a_recorded_command
    spec = file("cache_spec.rb")
    File.write(spec, "require 'pitwall/rspec'\nRSpec.describe(1) { it { expect { 1 }.not_to invalidate_caches } }\n")
    command = rspec
    run = pitwall("caches", "--quiet", "--no-lines", "--", *command, spec, env: @env)
    assert_match(/which a pitwall command records already: run these tests without it/, run.out)
  end
end

# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/shop_recording"
require "minitest/mock"
require "pp"
require "pitwall"
require "pitwall/analyse"

# What Pitwall.profile returns, as people see it.
class ResultTest < Minitest::Test
  def with_result
    Dir.mktmpdir do |dir|
      path = File.join(dir, "a.pit")
      File.binwrite(path, ShopRecording.bytes)
      yield Pitwall::Result.new(path, {}, 1), path
    end
  end

  # irb as far as it matters here; Ruby 4.0 does not bring it everywhere.
  def in_irb(context = :one)
    irb = Module.new { define_singleton_method(:CurrentContext) { context } }
    Object.const_set(:IRB, irb)
    yield
  ensure
    Object.send(:remove_const, :IRB)
  end

  def test_one_line
    with_result { |result, path| assert_equal "#<Pitwall::Result #{path}>", result.inspect }
    in_irb(nil) { with_result { |result, path| assert_equal "#<Pitwall::Result #{path}>", result.inspect } }
  end

  def test_the_report_in_irb
    with_result do |result, path|
      assert_match(/^ *self +wall +total/, result.report)
      in_irb { assert_equal ["#<Pitwall::Result #{path}>\n#{result.report}"] * 2, [result.inspect, result.pretty_inspect.chomp] }
    end
  end

  # Whoever calls this has typed no option.
  def test_mistakes_are_named_as_ruby_writes_them
    bursts = Pitwall::Analyse::Allocations.allocate
    bursts.define_singleton_method(:ends?) { false }
    { { by: [:x] } => "by: :x: it takes :path, :line", { sort: :x } => "sort: :x: it takes :count, ",
      { sort: :old } => "sort: :old: not known: objects were looked at in bursts" }.each do |arguments, message|
      with_result do |result|
        error = result.stub(:counted, bursts) { assert_raises(Pitwall::UsageError) { result.sites(**arguments) } }
        assert_includes error.message, message
        refute_includes error.message, "--"
      end
    end
  end

  def test_without_the_gem
    with_result do |result, path|
      result.stub(:load_gem, ->(*) { raise Pitwall::CannotMeasure, "gem install pitwall" }) do
        assert_match(/gem install pitwall/, assert_raises(Pitwall::CannotMeasure) { result.report }.message)
        in_irb { assert_equal "#<Pitwall::Result #{path}> (pitwall report #{path} shows it)", result.inspect }
      end
    end
  end
end

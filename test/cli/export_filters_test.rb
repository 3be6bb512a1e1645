# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/imported"
require_relative "../support/recording_builder"
require "pitwall/cli"
require "stringio"
require "tmpdir"

# Each filter with each export: what comes back from a file has the stacks and weights of the report's tree.
class ExportFiltersTest < Minitest::Test
  include Imported

  LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
  GEM = "/usr/lib/ruby/gems/3.1.0/gems"
  FRAMES = [["Shop#cart", "/srv/shop/cart.rb", 1, 2], ["Shop#tax", "/srv/shop/tax.rb", 5, 7],
            ["Shop::Fee#sum", "/srv/shop/fee.rb", 3, 3],
            ["Rack::Call#call", "#{GEM}/rack-3.0.1/lib/rack/call.rb", 9, 10],
            ["Nest#go", "#{GEM}/nest-1.2.0/lib/nest.rb", 4, 6], ["Array#each", "", 0, 0, 1], ["(marking)", "", 0, 0, 2],
            ["memcpy", LIBC, 0, 0, 3], ["qsort", LIBC, 0, 0, 3]].freeze
  FILTERS = [[], %w[--focus Shop#tax], %w[--hide Array#each], %w[--hide rack --focus Nest#go], %w[--only gems],
             %w[--only rack], %w[--only app], %w[--time 10us..60us], %w[--blackbox Shop#cart],
             %w[--blackbox Nest#go --blackbox rack], %w[--blackbox Shop#tax --hide Array#each],
             %w[--time 5us.. --focus Shop --hide Shop::Fee --blackbox rack], %w[--native],
             %w[--native --blackbox qsort], %w[--native --hide memcpy],
             %w[--only native], %w[--native --focus libc.so.6]].freeze

  def setup
    @dir = Dir.mktmpdir("pitwall-test-")
    File.binwrite(file("a.pit"), recording(Random.new(16)))
  end

  def teardown = FileUtils.rm_rf(@dir)

  def file(name) = File.join(@dir, name)

  def recording(random)
    builder = RecordingBuilder.new
    2.times do |number|
      builder.segment(pid: 40 + number, program: "shop.rb") do |segment|
        2.times { |thread| segment.thread(thread + 1, "t#{thread + 1}") }
        80.times do
          segment.row(thread: random.rand(1..2), state: random.rand(2),
                      stack: Array.new(random.rand(1..7)) { FRAMES.sample(random: random) },
                      wall: random.rand(1..2000), cpu: random.rand(900), captures: 1)
        end
      end
    end
    builder.bytes
  end

  def export(to, *filters)
    out, err = StringIO.new("".b), StringIO.new
    command = ["export", file("a.pit"), "--to", to, "--out", file("out"), "--idle", *filters]
    status = Pitwall::CLI.run(command, out: out, err: err)
    assert_equal [0, ""], [status, err.string.lines.grep(/Ruby|refused|bug|error/).join], [to, *filters].join(" ")
    File.binread(file("out"))
  end

  # The report's tree.
  def expected(filters)
    export("collapsed", *filters).lines.to_h do |line|
      line.chomp.rpartition(" ").then { |stack, _, weight| [stack, weight.to_i] }
    end
  end

  def test_each_filter_with_each_export
    seen = FILTERS.map do |filters|
      tree = expected(filters)
      refute_empty tree
      %w[pprof otlp speedscope firefox].each do |to|
        found = stacks(imported(export(to, *filters))).transform_keys { |path| path.join(";") }
        found.delete("(no stack)") if to == "firefox" # its time line has gaps where samples were left out
        assert_equal tree, found, [to, *filters].join(" ")
      end
      selfs = tree.each_with_object(Hash.new(0)) { |(stack, weight), sums| sums[stack[/[^;]+\z/]] += weight }
      own = methods(imported(export("callgrind", *filters))).transform_values(&:first)
      own = own.select { |_, weight| weight.positive? }
      assert_equal selfs, own, ["callgrind", *filters].join(" ")
      tree
    end
    assert_equal FILTERS.size, seen.uniq.size, "each filter shows something else"
  end

  # The oracle: what a stack becomes, sample by sample.
  def test_a_blackbox_leaves_nothing_below
    plain, boxed = expected([]), expected(%w[--blackbox Shop#cart])
    sums = plain.each_with_object(Hash.new(0)) do |(stack, weight), found|
      found[stack[/\A.*?Shop#cart(?=;|\z)/] || stack] += weight
    end
    assert_equal sums, boxed
  end

  def test_unknown_names_are_refused_alike
    %w[collapsed pprof otlp speedscope firefox callgrind].each do |to|
      err = StringIO.new
      command = ["export", file("a.pit"), "--to", to, "--out", file("none"), "--blackbox", "Shop#crat"]
      status = Pitwall::CLI.run(command, out: StringIO.new, err: err)
      assert_equal 2, status
      assert_match(/\Apitwall: --blackbox: no method "Shop#crat" in the recording; did you mean Shop#cart/, err.string)
      refute_path_exists file("none")
    end
  end
end

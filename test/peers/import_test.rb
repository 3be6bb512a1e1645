# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/imported"
require_relative "../../benchmarks/support/peers"

# Profiles that the real tools write now, imported: the figures must be those of the tools' own reports. The gems are
# those that the benchmarks have installed.
class ImportPeersTest < Minitest::Test
  include Imported
  include CommandLine

  SHOP = File.join(Imported::REAL, "shop")
  RUN = "require File.join(#{SHOP.inspect}, 'work'); shop = Shop.new; work(shop, 5)"

  def test_stackprof
    run_with("stackprof", <<~RUBY)
      require "stackprof"
      require "json"
      #{RUN}
      %w[wall cpu].each do |mode|
        result = StackProf.run(mode: mode.to_sym, interval: 500, raw: true) { work(shop, 60) }
        File.binwrite("\#{mode}.dump", Marshal.dump(result))
        File.write("\#{mode}.json", JSON.generate(result))
      end
    RUBY
    %w[wall cpu].each do |mode|
      result = JSON.parse(File.read(file("#{mode}.json")))
      once = result["frames"].values.group_by { |frame| frame["name"] }.select { |_, frames| frames.size == 1 }.transform_values(&:first)
      [File.binread(file("#{mode}.json")), File.binread(file("#{mode}.dump"))].each do |bytes|
        recording = imported(bytes)
        assert_equal with_stack(result["raw"]), recording.segments.first.stat("captures")
        assert_operator recording.segments.first.stat("captures"), :<=, result["samples"]
        own = methods(recording, :captures)
        once.each { |name, frame| assert_equal frame.values_at("samples", "total_samples"), own[name], "#{mode} #{name}" }
        assert_operator once.size, :>, 3
      end
    end
  end

  # Samples that have a stack. (stackprof also counts some that have none.)
  # @param raw [Array<Integer>] stackprof's list of stacks. A stack is the number of its frames, these frames, and the
  #   number of samples in a row that had this stack
  def with_stack(raw)
    left = raw.dup
    count = 0
    count += left.shift(left.first + 2).last until left.empty?
    count
  end

  # These gems need Ruby 3.3.
  if RUBY_VERSION >= "3.3"
    def test_vernier
      run_with("vernier", <<~RUBY)
        require "vernier"
        #{RUN}
        result = Vernier.profile(out: "x.json", interval: 500) { work(shop, 60) }
        File.write("told", result.threads.values.sum { |thread| thread[:weights].sum }.to_s)
      RUBY
      recording = imported(File.binread(file("x.json")))
      assert_equal File.read(file("told")).to_i, recording.segments.first.stat("captures")
      assert_equal recording.segments.first.stat("captures"), methods(recording, :captures).values.sum(&:first)
      assert_operator methods(recording, :captures)["Shop#tax"].last, :>, 0
    end

    def test_ruby_prof
      run_with("ruby-prof", <<~RUBY, also: %w[base64 ostruct])
        require "ruby-prof"
        #{RUN}
        result = RubyProf::Profile.profile(measure_mode: RubyProf::WALL_TIME) { work(shop, 3) }
        RubyProf::CallTreePrinter.new(result).print(path: ".")
        rows = result.threads.flat_map(&:methods).map { |m| [m.full_name, m.called, m.self_time].join("\\t") }
        File.write("told", rows.join("\\n"))
      RUBY
      recording = imported(File.binread(Dir[file("callgrind.out.*")].first))
      walls, calls = methods(recording), methods(recording, :calls)
      told = File.readlines(file("told"), chomp: true).map { |line| line.split("\t") }.select { |name,| name.match?(/\A(?:Shop|Integer|Range|Enumerable|String)#/) }
      assert_operator told.size, :>, 8
      told.each do |name, called, own|
        assert_equal called.to_i, calls[name].first, name
        assert_in_delta own.to_f * 1e9, walls.fetch(name, [0]).first, 1500, name # the format has microseconds
      end
    end
  end

  def test_memory_profiler
    run_with("memory_profiler", <<~RUBY)
      require "memory_profiler"
      require "json"
      #{RUN}
      results = MemoryProfiler.report(top: 3) { work(shop, 2) }
      keys = %w[allocated_objects_by_location allocated_memory_by_location retained_objects_by_location total_allocated total_allocated_memsize]
      File.write("x.json", JSON.generate(keys.to_h { |key| [key, results.public_send(key)] }))
    RUBY
    told = JSON.parse(File.read(file("x.json")))
    recording = imported(File.binread(file("x.json")))
    assert_equal told.values_at("total_allocated", "total_allocated_memsize"), %i[objects bytes].map { |weight| stacks(recording, weight).values.sum }
    told["allocated_objects_by_location"].each { |row| assert_equal row["count"], stacks(recording, :objects)[[File.basename(row["data"])]], row["data"] }
  end

  def test_valgrind
    valgrind, annotate, compiler = %w[valgrind callgrind_annotate cc].map { |name| ENV["PATH"].split(":").map { |dir| File.join(dir, name) }.find { |path| File.executable?(path) } }
    skip "no callgrind (Debian: valgrind), or no C compiler" unless valgrind && annotate && compiler

    assert capture({}, compiler, "-g", "-O0", File.join(SHOP, "shop.c"), "-o", "shop").status.success?
    capture({}, valgrind, "--tool=callgrind", "--callgrind-out-file=x.out", "./shop")
    told = capture({}, annotate, "--threshold=100", "x.out").out.scan(/^ *([\d,]+) \(.*?\)  \S+?:(\S+) \[.*\/shop\]/).to_h { |cost, name| [name, cost.delete(",").to_i] }
    own = methods(imported(File.binread(file("x.out"))), :captures).transform_values(&:first)
    assert_operator told.size, :>, 6
    assert_equal told, own.slice(*told.keys)
  end

  private

  def run_with(name, program, also: [])
    bundle = File.join(Checkout::ROOT, "tmp/benchmarks-bundle")
    skip "#{name} is not installed (the benchmarks do that)" unless Dir[File.join(bundle, "#{RUBY_VERSION}-*/ruby/*/gems/#{name}-*")].any?

    peers = Benchmarks::Peers.new
    skip "#{name}: #{peers.missing(name)}" if peers.missing(name)

    paths = [name, *also.reject { |other| peers.missing(other) }].flat_map { |gem| peers.paths(gem) }
    File.write(file("program.rb"), program)
    result = capture({}, RUBY, *paths.map { |path| "-I#{path}" }, file("program.rb"))
    assert result.status.success?, result.err
  end
end

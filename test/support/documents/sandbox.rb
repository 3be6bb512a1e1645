# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../recording_builder"

# A folder with the files that the documents' commands name, so that the commands can be run: logs, programs, and
# recordings that have all methods, routes and files that documents ask for.
class DocumentedSandbox
  RECORDINGS = %w[x orders books tests shop lock words boot leak growth fixed sites time before before2 puma
                  controller tmp/pitwall/1].freeze
  AFTER = %w[after after2 NEW y integration tmp/pitwall/2].freeze
  FILES = %w[shop.rb orders.rb server.rb lock.rb settings.rb cart_test.rb app/models/order.rb lib/upstream.rb
             lib/exports.rb].freeze
  PERF = File.expand_path("../../fixtures/real/perf/pid.txt", __dir__)
  # Other tools' profiles: name in the documents → fixture.
  REAL = File.expand_path("../../fixtures/real", __dir__)
  PROFILES = { "stackprof.json" => "stackprof/wall-raw.json", "later.json" => "stackprof/raw-only.json",
               "stackprof.dump" => "stackprof/wall.dump", "vernier.json" => "vernier/threads.json",
               "callgrind.out.1234" => "ruby_prof/wall.callgrind" }.freeze
  METHODS = %w[Monitor#synchronize Order#checkout Order#total Record#attributes String#each_byte
               ActiveRecord::Relation#load Foo#bar Cart#total Array#each].freeze
  GEM = ["Rack::Head#call", "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack/head.rb", 9, 11].freeze
  ROUTES = ["orders#show", "GET /orders/:id", "GET /books", "GET /report", "GET /export.csv"].freeze
  # Allocates a fixed number of objects, however fast the machine is.
  PROGRAM = <<~RUBY
    module Shop
      class Cart
        def sum = @items.sum { |item| item.size }
        def initialize = @items = Array.new(1_000) { |number| number.to_s }
      end
    end
    cart = Shop::Cart.new
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) + 100_000_000
    cart.sum while Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) < finish
    File.read(__FILE__)
  RUBY
  CALLS = %w[open fstat fgetxattr fgetxattr close].freeze
  LOG = %w[/app/lib/a.rb /app/lib/b.rb].flat_map { |path| CALLS.map { |call| "#{call}\t#{path}\n" } }.join
  MAIN = ["<main>", "shop.rb", 1, 3].freeze

  # Yields with the folder as working directory.
  def self.open(yaml)
    Dir.mktmpdir("pitwall-docs-") do |dir|
      Dir.chdir(File.realpath(dir)) do
        new(yaml).write
        yield
      end
    end
  end

  # @param yaml what .pitwall.yml holds
  #: (String) -> void
  def initialize(yaml)
    @yaml = yaml
  end

  def write
    FileUtils.cp_r(File.expand_path("../../../examples/shop/patches", __dir__), ".")
    FileUtils.mkdir_p("examples")
    FileUtils.cp_r(File.expand_path("../../../examples/url_helpers", __dir__), "examples")
    %w[tmp/pitwall lib/patches app/models debug-files].each { |folder| FileUtils.mkdir_p(folder) }
    RECORDINGS.each { |name| File.binwrite("#{name}.pit", recording) }
    AFTER.each { |name| File.binwrite("#{name}.pit", recording(2)) }
    File.write("x.rb", PROGRAM)
    PROFILES.each { |name, path| FileUtils.cp(File.join(REAL, path), name) }
    %w[perf.data perf.txt].each { |name| FileUtils.cp(PERF, name) }
    File.write("lib/patches/faster.rb", "")
    File.write("boot.log", LOG)
    File.write("after.log", LOG.lines.first(5).join)
    File.write(".pitwall.yml", @yaml)
  end

  private

  # @param part requests and objects take that part of what they did
  def recording(part = 1)
    collectors = %w[allocations trace syscalls]
    RecordingBuilder.build(pid: 4000 + part, collectors: collectors, mode_reason: "asked for") do |segment|
      segment.thread 1, "main"
      segment.thread 2, "puma srv tp 001"
      samples(segment, part)
      requests(segment, part)
      objects(segment, part)
      others(segment)
    end
  end

  def samples(segment, part)
    FILES.each_with_index do |file, at|
      methods = METHODS.map { |name| [name, File.join(Dir.pwd, file), 9, 11] }
      stack = [MAIN, ["Shop.step#{at}", File.join(Dir.pwd, file), 1, 8], GEM, *methods]
      ROUTES.each do |route|
        labels = { "route" => route }
        segment.row stack: stack, wall: 20_000 / part, cpu: 18_000 / part, captures: 20, labels: labels
      end
      segment.row stack: stack, wall: 5_000, cpu: 5_000, captures: 5, labels: { "test" => "CartTest#test_total" }
      segment.row thread: 2, stack: [*stack, ["Thread::Mutex#lock", "", 0, 0, 1]], state: 2, wall: 9_000, cpu: 0
      segment.row thread: 2, stack: stack, state: 1, wall: 9_000, cpu: 0
    end
    segment.row stack: [MAIN, ["(marking)", "", 0, 0, 2]], wall: 20_000, cpu: 20_000, captures: 20
    9.times do |at|
      segment.collection start: at * 100_000_000, marking: 2_000_000, sweeping: 1_000_000, allocated: 5_000,
                         living: 20_000, majors: at % 3 / 2
    end
  end

  def requests(segment, part)
    place = ["Shop.step0", File.join(Dir.pwd, "shop.rb"), 1, 8]
    ROUTES.map { |route| { "route" => route } }.each do |labels|
      segment.mark(labels, end_ns: 950_000_000, ns: 949_000_000)
      9.times { |at| segment.mark(labels, end_ns: (at + 1) * 50_000_000, ns: (20_000_000 + at * 100_000) / part) }
      segment.work(labels, count: 10, ns: 949_000_000 + 180_000_000 / part)
      segment.queries(labels, digest: 7, place: place, works: 9, count: 90, ns: 900_000, most: 10)
    end
    segment.queries_of(50_000_000, digest: 7, place: place, count: 10, ns: 100_000)
    segment.mark({ "test" => "CartTest#test_total" }, end_ns: 700_000_000, ns: 45_000_000)
    segment.test({ "test" => "CartTest#test_total" }, count: 1, ns: 45_000_000, cpu: 40_000_000, objects: 90, gc: 1_000)
  end

  def objects(segment, part)
    METHODS.each.with_index(5) do |name, id|
      kept = 8_000 / part
      counters = [9_000 / part, 0, 1_000, 9_000, 1, 3, 40 * 9_000, 99 * 9_000, kept, 1_000_000, 99 * kept]
      stack = [MAIN, [name, File.join(Dir.pwd, "shop.rb"), 9, 11]]
      segment.site id, stack: stack, counters: counters, work: [900_000, 10, 20, 30, 4]
    end
    20.times do |at|
      living = 100 + at * 400
      segment.living at + 1, at_ns: at * 90_000_000, sites: { 5 => living }, rss: 40_000_000 + at * 99_000, flags: 1,
                             births: [[5, at + 1, living, 4_000]]
    end
  end

  def others(segment)
    METHODS.each do |name|
      segment.calls stack: [MAIN, [name, "shop.rb", 9, 11]], calls: 9, wall: 9_000, cpu: 8_000, probe: 100,
                    objects: 3, bytes: 120
    end
    segment.traced
    segment.syscall "openat", path: "/app/shop.rb", at: 2000, ns: 7, result: 5, flags: 0, stack: [MAIN], cwd: "/app"
    segment.syscall_totals({ "openat" => [1, 0, 7] })
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/record"
require "pitwall/record/chunks"
require "pitwall/show/boot/words"
require "pitwall/show/terminal/location"

# The tree of a boot, whose code its time is, and what to do about it.
class BootAnalysisTest < Minitest::Test
  Boot = Pitwall::Analyse::Boot
  Load = Pitwall::Record::Load

  def load(id, parent: 0, **values)
    zeroes = Load.members.to_h { |name| [name, 0] }
    Load.new(*zeroes.merge(thread: 1, id: id, parent: parent, kind: "require", name: "f#{id}", path: "/srv/f#{id}.rb",
                           from: "/srv/main.rb", line: id, cache: "", **values).values_at(*Load.members))
  end

  def segment(loads, pid: 1, **sums)
    sizes = { "at_ns" => 1_000_000, "features" => 9, "load_path" => 2, "gc_ns" => 300_000, "gc_runs" => 3,
              "objects" => 50, "heap_slots" => [400, 20] }
    boot = { "age_ns" => 200_000, "own_ns" => 50_000, "start" => sizes.merge("gc_ns" => 0, "at_ns" => 0),
             "booted" => nil, "end" => sizes, "repeats" => 1, "repeat_ns" => 5 }
    header = Pitwall::Record::Header.new("pid" => pid)
    boot.update(sums.transform_keys(&:to_s))
    Pitwall::Record::Segment.empty.with(loads: loads, header: header, boot_sums: boot)
  end

  def boot(*segments) = Boot.new(segments, origin: Pitwall::Analyse::Origin.new)

  def test_what_a_load_took_itself_adds_up
    random = Random.new(18)
    20.times do
      loads = random_tree(random, 60)
      tree = Boot::Tree.new(loads.shuffle(random: random))
      Boot::FIGURES.each do |name|
        own = tree.nodes.sum { |node| node.own[name] }
        assert_equal tree.roots.sum { |node| node.total[name] }, own, name
      end
      assert_equal (1..loads.size).to_a, tree.nodes.map { |node| node.row.id }
    end
  end

  # Each load has what its children have, and something itself.
  def random_tree(random, count)
    parents = (1..count).map { |id| id == 1 ? 0 : random.rand(id) }
    figures = Array.new(count) { random.rand(1..1000) }
    count.downto(1) { |id| figures[parents[id - 1] - 1] += figures[id - 1] if parents[id - 1].positive? }
    parents.each_with_index.map do |parent, at|
      load(at + 1, parent: parent, wall_ns: figures[at], cpu_ns: figures[at], gc_ns: figures[at], objects: figures[at],
                   bytes: figures[at], rss_before: 5, rss_after: figures[at] + 5)
    end
  end

  def test_drawn_as_calls
    loads = random_tree(Random.new(3), 40)
    drawn = Boot::Drawing.call(segment(loads))
    tree = Pitwall::Analyse::CallTreeBuilder.build([drawn], weights: %i[wall objects bytes calls])
    roots = loads.select { |load| load.parent.zero? }
    assert_equal roots.sum(&:wall_ns), tree.total(:wall)
    assert_equal roots.sum(&:objects), tree.total(:objects)
    assert_equal 40, tree.total(:calls)
    assert_equal drawn, Boot::Drawing.call(drawn), "it is drawn once"
  end

  def test_loads_whose_parent_was_lost_are_roots
    tree = Boot::Tree.new([load(7, parent: 3), load(9, parent: 7)])
    assert_equal [7], tree.roots.map { |node| node.row.id }
  end

  def test_whose_code_it_is
    paths = { "/gems/rack-3.1.8/lib/rack.rb" => "gems", "/gems/railties-7.2.1/lib/rails.rb" => "Rails",
              "/gems/bundler-2.5.1/lib/bundler/dsl.rb" => "Bundler", "/usr/lib/ruby/3.4.0/bundler.rb" => "Bundler",
              "/usr/lib/ruby/3.4.0/rubygems/ext.rb" => "RubyGems", "/usr/lib/ruby/3.4.0/set.rb" => "standard library",
              "/usr/lib/ruby/gems/3.1.0/specifications/default/set-1.0.2.gemspec" => "RubyGems",
              "/opt/gems/specifications/rack-3.1.8.gemspec" => "RubyGems", "/srv/app/shop.gemspec" => "application",
              "/srv/app/cart.rb" => "application", "/bundler/gems/shop-1f2e3d4c5b6a/lib/shop.rb" => "gems" }
    loads = paths.keys.each_with_index.map { |path, at| load(at + 1, path: path, wall_ns: 1) }
    found = boot(segment(loads))
    assert_equal paths.values, found.nodes.map { |node| found.owners.of(node) }
    assert_equal 1_150_000, found.wall_ns
    assert_equal found.wall_ns, found.parts.sum(&:own_ns)
    assert_equal [150_000, 50_000], [found.before_ns, found.own_ns]
  end

  # Evaluated strings add to the time, but not to the number of files. A script that is loaded twice counts once.
  def test_files_are_counted_once
    big = "/gems/big-1.0/lib/big.rb"
    rows = [load(1, path: big, wall_ns: 500_000), load(2, parent: 1, path: big, kind: "eval", wall_ns: 20_000),
            load(3, parent: 1, path: "/gems/big-1.0/lib/big.so", wall_ns: 5_000),
            load(4, parent: 1, path: "/gems/big-1.0/lib/task.rb", kind: "load", wall_ns: 5_000),
            load(5, parent: 1, path: "/gems/big-1.0/lib/task.rb", kind: "load", wall_ns: 5_000),
            load(6, parent: 1, path: "", name: "big.paths", kind: "initializer", from: big),
            load(7, parent: 1, path: "/gems/big-1.0/lib/none.rb", ending: 2), load(8, path: "/srv/app/cart.rb")]
    found = boot(segment(rows))
    assert_equal [["big", 3, 500_000]], (found.gems.map { |row| [row.name, row.files, row.own_ns] })
    assert_equal 3, found.parts.find { |row| row.name == "gems" }.files
    assert_equal 3, found.advice.find { |one| one.kind == "gem" }.figures[:files]
  end

  # 50 were there when the recording began, and 80 are in the end.
  def test_objects_of_all_parts
    loads = [load(1, objects: 7), load(2, parent: 1, objects: 3), load(3, thread: 2, objects: 4)]
    at_end = { "at_ns" => 1_000_000, "objects" => 80 }
    found = boot(segment(loads, end: at_end))
    assert_equal [30, 23], [found.figures[:objects], found.outside_objects]
    assert_equal 80, found.parts.sum(&:objects)
  end

  def test_the_process_with_most_loads_and_its_exec
    found = boot(segment([load(1)], pid: 1), segment([load(1), load(2)], pid: 2), segment([load(1)], pid: 2))
    assert_equal [3, 2, 1], [found.nodes.size, found.segments.size, found.others.size]
  end

  def test_an_exec_begins_to_count_anew
    first, second = [400, 70].map do |count|
      from, to = [count, count * 2].map { |n| %w[at_ns objects bytes gc_ns gc_runs].to_h { |name| [name, n] } }
      segment([load(1)], start: from, end: to)
    end
    figures = boot(first, second).figures
    assert_equal [470] * 4, figures.values_at(:objects, :bytes, :gc, :gc_runs)
  end

  def test_after_the_boot
    rows = [load(1, at_ns: 5), load(2, at_ns: 7), load(3, at_ns: 20, begun: 1), load(4, at_ns: 30)]
    found = boot(segment(rows, booted: { "at_ns" => 10, "features" => 4 }))
    assert_equal [[1, 2], [3, 4]], [found.nodes.map { |node| node.row.id }, found.late.map(&:id)]
    assert_equal ["booted", 4, 150_010], [found.ended_by, found.figures[:features], found.wall_ns]
  end

  # Rows without a file are the same only if their kind is the same.
  def test_a_file_is_the_same_by_require_and_by_autoload
    step = { name: "set_paths", path: "", from: "/srv/engine.rb" }
    before = [load(1, kind: "autoload", wall_ns: 300), load(2, kind: "initializer", **step), load(3, wall_ns: 5)]
    after = [load(1, kind: "require", wall_ns: 900), load(2, kind: "eager_load", **step), load(4, wall_ns: 5),
             load(5, path: "/srv/f1.rb", kind: "eval", wall_ns: 50)]
    change = Boot::Change.new(boot(segment(before)), boot(segment(after)))
    both = change.of(:both).map { |row| [row.path, row.kind, row.wall] }
    assert_equal [["/srv/f1.rb", "require", [300, 950]]], both
    assert_equal [["/srv/f4.rb", "require"], %w[set_paths eager_load]], sides(change, :new)
    assert_equal [["/srv/f3.rb", "require"], %w[set_paths initializer]], sides(change, :gone)
  end

  def sides(change, side) = change.of(side).map { |row| [row.path, row.kind] }

  def test_what_to_do
    rows = [load(1, kind: "bundler_require", path: "", name: "", wall_ns: 700_000),
            load(2, parent: 1, path: "/gems/big-1.0/lib/big.rb", wall_ns: 500_000, compile_ns: 100_000),
            load(3, parent: 2, path: "/gems/small-1.0/lib/small.rb", from: "/gems/big-1.0/lib/big.rb", wall_ns: 90_000),
            load(4, wall_ns: 80_000, compile_ns: 20_000, objects: 12),
            load(5, name: "none", wall_ns: 30_000, ending: 2)]
    advice = boot(segment(rows)).advice
    assert_equal advice.map(&:saving_ns).sort.reverse, advice.map(&:saving_ns)
    found = advice.to_h { |one| [[one.kind, one.subject], one.saving_ns] }
    assert_equal 500_000, found[%w[gem big]]
    refute found.key?(%w[gem small]), "another gem asked for it"
    keys = [["heap", nil], ["compile_cache", nil], %w[failed none]]
    assert_equal [300_000, 72_000, 30_000], found.values_at(*keys)
    assert_equal 60_000, found[["own_code", "/srv/f4.rb"]]
  end

  # Each later file has its code after 30 µs. The second one is off the CPU for 80 µs, so at most 30 count. A string
  # waits 5 µs. Files of the gem itself, files before it, and those of another thread do not count.
  def test_the_thread_of_the_gem_debug
    waiting = { wall_ns: 90_000, cpu_ns: 80_000, compile_ns: 30_000 }
    lib = "/gems/debug-1.11.1/lib/debug"
    gem = [load(1, **waiting), load(2, path: "/b.rb", kind: "bundler_require", wall_ns: 190_000, cpu_ns: 150_000),
           load(3, parent: 2, path: "#{lib}.rb", wall_ns: 180_000, cpu_ns: 150_000),
           load(4, parent: 3, path: "#{lib}/session.rb", from: "#{lib}.rb", wall_ns: 170_000, cpu_ns: 150_000),
           load(5, parent: 4, path: "#{lib}/config.rb", from: "#{lib}/session.rb", **waiting)]
    after = [load(6, **waiting), load(7, **waiting, wall_ns: 160_000), load(8, **waiting, thread: 2),
             load(9, kind: "eval", wall_ns: 7_000, cpu_ns: 2_000), load(10, kind: "initializer", wall_ns: 50_000)]
    advice = debugger_advice([*gem, *after])
    assert_equal [45_000, 3, ["/srv/main.rb", 3]], [advice.saving_ns, advice.figures[:count], advice.place]
    assert_match(/\Aup to 45.0 µs: start the gem debug when .* each of 3 files and strings \(.*main\.rb:3\)\z/,
                 Pitwall::Show::BootWords.advice(advice, Pitwall::Show::Location.new))
    assert_equal "RUBY_DEBUG_ENABLE=0", Pitwall::Show::BootWords.setting(advice, "3.4.1")

    assert_nil debugger_advice([load(1), *after]), "without the gem"
    assert_nil debugger_advice([*gem.first(4), *after]), "RUBY_DEBUG_ENABLE=0: session.rb returns at once"
    rdbg = [load(4, path: "#{lib}/session.rb", from: ""), load(5, parent: 4, path: "#{lib}/config.rb", from: "")]
    assert_nil debugger_advice([*rdbg, *after]), "rdbg loads it"
    own = [load(4, path: "/srv/debug/session.rb"), load(5, parent: 4)]
    assert_nil debugger_advice([*own, *after]), "a file of the application's own"
  end

  def debugger_advice(rows) = boot(segment(rows)).advice.find { |one| one.kind == "debugger" }

  # tzinfo reads two zones, one of them twice. Those that a cache was asked for do not count.
  def test_time_zones
    from = "/gems/tzinfo-2.0.6/lib/tzinfo/data_sources/zoneinfo_data_source.rb"
    zone = { kind: "zoneinfo", from: from, line: 311, wall_ns: 90_000 }
    rows = [load(1, path: "/zones/a", **zone), load(2, path: "/zones/b", **zone), load(3, path: "/zones/a", **zone)]
    found = boot(segment(rows))
    assert_equal [["tzinfo", 270_000]], (found.gems.map { |row| [row.name, row.own_ns] })
    assert_equal %w[gems], found.nodes.map { |node| found.owners.of(node) }.uniq
    assert_equal ["time zone"], found.nodes.map { |node| Pitwall::Show::BootWords.kind(node, found) }.uniq
    advice = found.advice.find { |one| one.kind == "time_zones" }
    assert_match(/\Aup to 270 µs: keep time zones between boots .*: tzinfo read 2 files \(.*source\.rb:311\)\z/,
                 Pitwall::Show::BootWords.advice(advice, Pitwall::Show::Location.new))
    assert_equal "RUBYOPT=-rpitwall/fastboot", Pitwall::Show::BootWords.setting(advice, "3.4.1")

    kept = boot(segment([load(1, path: "/zones/a", cache: "fastboot data_hit", **zone)]))
    assert_nil kept.advice.find { |one| one.kind == "time_zones" }
  end

  # One file of a gem has most requires, and another one has most of their time.
  def test_where_files_are_required_again
    rows = [load(1, path: "/gems/big-1.0/lib/many.rb", repeats: 9, repeat_ns: 1_000),
            load(2, path: "/gems/big-1.0/lib/slow.rb", repeats: 2, repeat_ns: 40_000),
            load(3, path: "/srv/app/few.rb", repeats: 1, repeat_ns: 2_000),
            load(4, path: "", kind: "bundler_require", repeats: 20, repeat_ns: 3_000)]
    assert_match(/ 33, 9 of them in .*many\.rb\z/, repeats_sentence(rows))
    mine = load(5, path: "/srv/app/cart.rb", repeats: 4, repeat_ns: 30_000)
    assert_match(/ 37, 4 of them in .*cart\.rb\z/, repeats_sentence([*rows, mine]))
    assert_match(/ 1\z/, repeats_sentence([load(1)], repeat_ns: 90_000))
  end

  def repeats_sentence(rows, **sums)
    advice = boot(segment(rows, **sums)).advice.find { |one| one.kind == "repeats" }
    Pitwall::Show::BootWords.advice(advice, Pitwall::Show::Location.new)
  end

  # 200 µs in the first program, 50 of them Pitwall's; 900 until the second one was recorded.
  def test_a_process_that_replaced_itself
    first = ->(load) { segment([load], age_ns: 200_000, own_ns: 50_000) }
    second = segment([load(2)], age_ns: 900_000, own_ns: 60_000)
    setup = { path: "/lib/bundler/setup.rb" }
    found = [load(1), load(1, ending: 1), load(1, **setup), load(1, ending: 1, **setup)].map do |one|
      boot(first[one], second).advice.find { |advice| advice.kind == "exec" }
    end
    assert_equal [[640_000, nil]] * 3 + [[640_000, "Bundler"]], found.map { |one| [one.saving_ns, one.subject] }
    assert_equal [nil, "BUNDLE_VERSION=system"],
                 (found.last(2).map { |one| Pitwall::Show::BootWords.setting(one, "3.4.1") })
    sentences = found.last(2).map { |one| Pitwall::Show::BootWords.advice(one, Pitwall::Show::Location.new) }
    assert_match(/\Aabout 640 µs: start the program itself/, sentences.first)
    assert_match(/\Aabout 640 µs: have Bundler start the command once/, sentences.last)
    refute_includes boot(second).advice.map(&:kind), "exec"
    refute_predicate boot(program("bundle"), program("rails")), :restarted_by_bundler?
    assert_predicate boot(program("bundle"), program("bundle"), program("rails")), :restarted_by_bundler?
  end

  def program(name)
    segment([load(1)]).with(header: Pitwall::Record::Header.new("pid" => 1, "program" => name))
  end

  # The variable that one of the two compared boots gets.
  def test_what_proves_advice
    advice = ->(kind, subject = nil, **figures) { Pitwall::Analyse::Boot::Advice.new(kind:, subject:, figures:) }
    all = [advice["compile_cache"], advice["cold_cache", "bootsnap"], advice["heap", slots: [7, 2]],
           advice["heap", slots: []], advice["gem", "big"]]
    expected = ["RUBYOPT=-rpitwall/fastboot", "DISABLE_BOOTSNAP=1", "RUBY_GC_HEAP_0_INIT_SLOTS=7", nil, nil]
    assert_equal expected, (all.map { |one| Pitwall::Show::BootWords.setting(one, "3.4.1") })
    assert_equal "RUBY_GC_HEAP_INIT_SLOTS=9", Pitwall::Show::BootWords.setting(all[2], "3.1.2")
  end

  def test_caches
    rows = [load(1, cache: "fastboot hit_moved"), load(2, cache: "bootsnap hit"),
            load(3, kind: "yaml", cache: "fastboot data_hit"),
            load(4, cache: "fastboot verbose", wall_ns: 90_000, compile_ns: 50_000), load(5, cache: "fastboot missing"),
            load(6, compile_ns: 70_000, wall_ns: 70_000), load(7, ending: 2, cache: "fastboot missing"),
            load(8, path: "/srv/f5.rb", cache: "fastboot hit"),
            load(9, path: "/gems/bootsnap-1.2/lib/bootsnap/setup.rb"),
            load(10, cache: "bootsnap miss", wall_ns: 90_000, compile_ns: 50_000)]
    found = boot(segment(rows))
    assert_equal [["fastboot", 2, { "verbose" => 1, "missing" => 1 }], ["bootsnap", 1, { "miss" => 1 }]],
                 found.caches.map(&:to_a)
    assert_equal [true, true, true, false, false, nil, nil, true, nil, false], found.nodes.map(&:cached?)
    assert_equal [3, 3, false], [*found.figures.values_at(:cache_hits, :cache_misses), found.warm?]
    advice = found.advice.select { |one| one.kind.end_with?("_cache") }
    assert_equal [["late_cache", 42_000, "fastboot", 1], ["cold_cache", 30_000, "bootsnap", 1]],
                 (advice.map { |one| [one.kind, one.saving_ns, one.subject, one.figures[:files]] })
    assert boot(segment(rows.first(3))).warm?
    assert_equal [nil, nil], boot(segment([load(1)])).figures.values_at(:cache_hits, :cache_misses)
  end

  # A program may add a few features itself.
  def test_features_without_a_load
    rows = Array.new(100) { |at| load(at + 1, kind: %w[require autoload require_relative load][at % 4]) }
    counts = { 85 => 0, 75 => 0, 200 => 125 }
    found = counts.to_h do |features, _|
      ends = { "at_ns" => 9, "features" => features + 5 }
      [features, boot(segment(rows, start: { "features" => 5 }, end: ends)).unwatched]
    end
    assert_equal counts, found
  end

  Use = Pitwall::Record::FileUse

  # loads: path => used (true, false, or nil: it has no row)
  def used_boot(rows, uses, **sums)
    found = uses.flat_map { |path, used| [0, *(1 if used)].map { |one| Use.new(path, one, 1) } unless used.nil? }
    boot(segment(rows, used: true, **sums).with(file_uses: found.compact))
  end

  def test_what_is_never_used
    gem = ->(name, file = name) { "/gems/#{name}-1.0/lib/#{file}.rb" }
    paths = [gem["idle"], gem["idle", "part"], gem["busy"], gem["native"], "/gems/native-1.0/lib/native.so",
             gem["open"], "/srv/app/cart.rb", "/srv/app/stock.rb", gem["busy", "rest"]]
    parents = [0, 1, 2, 0, 4, 0, 0, 7, 3]
    rows = paths.zip(parents).each_with_index.map do |(path, parent), at|
      load(at + 1, path: path, parent: parent, wall_ns: path.end_with?("stock.rb") ? 5_000 : 100_000 - at * 10_000,
                   ending: path == gem["open"] ? 1 : 0)
    end
    uses = paths.to_h { |path| [path, [gem["busy"], "/srv/app/stock.rb"].include?(path)] }
    found = used_boot(rows, uses.merge("/gems/native-1.0/lib/native.so" => nil))
    assert_equal [["idle", 2]], found.uses.gems.map { |row| [row.name, row.files] }
    assert_equal ["/srv/app/cart.rb", gem["busy", "rest"]].sort, found.uses.files_of_used.map(&:name).sort
    assert_equal({ used: 2, unused: 4, unknown: 1 }, found.uses.counts, "the native gem has compiled code")
    advice = found.advice.select { |one| one.kind.start_with?("unused") }
    expected = [["unused_file", "/srv/app/cart.rb"], %w[unused_gem idle]]
    assert_equal expected, advice.map { |one| [one.kind, one.subject] }
    assert_equal [40_000 - 5_000, 100_000 - 80_000], advice.map(&:saving_ns), "what they load is used"
    refute advice[1].figures[:in_gemfile]
    assert_nil found.nodes.map { |node| found.uses.used?(node) }[3]
    refute boot(segment(rows)).uses.known?
    assert_empty boot(segment(rows)).uses.gems
  end

  def test_an_unused_gem_of_the_gemfile_and_used_after_the_boot
    rows = [load(1, kind: "bundler_require", path: "", name: "", wall_ns: 700_000),
            load(2, parent: 1, path: "/gems/big-1.0/lib/big.rb", wall_ns: 500_000)]
    one = used_boot(rows, { "/gems/big-1.0/lib/big.rb" => false }).advice.first
    assert_equal ["unused_gem", "big", 500_000, true], [one.kind, one.subject, one.saving_ns, one.figures[:in_gemfile]]
    assert_equal ["/srv/main.rb", 2], one.place
    gemfile = load(3, kind: "eval", path: "/srv/Gemfile", from: "/gems/bundler-2.6.1/lib/bundler/dsl.rb")
    assert_equal ["/srv/Gemfile", 0], used_boot([*rows, gemfile], {}).advice.first.place
    late = used_boot(rows, { "/gems/big-1.0/lib/big.rb" => false, "/gems/big-1.0/lib/late.rb" => true })
    assert_empty late.uses.gems, "a file that was loaded later is used"
    found = late.advice.map { |advice| [advice.kind, advice.figures[:entry_unused]] }
    assert_equal [["gem", true], ["heap", nil]], found, "the file has no line of its own"
    inside = load(3, parent: 1, path: "/srv/engines/shop/lib/shop.rb", wall_ns: 100_000)
    own = used_boot([*rows, inside], { inside.path => false }).advice.find { |advice| advice.kind == "unused_file" }
    assert_equal inside.path, own.subject, "a gem inside of the application has no line of its own"
    used = used_boot(rows, { "/gems/big-1.0/lib/big.rb" => true }).advice.first
    assert_equal ["gem", false], [used.kind, used.figures[:entry_unused]]
  end

  Repeated = Pitwall::Record::RepeatedLoad

  def again(around, name, from, line = 1, kind: "require") = Repeated.new(around, kind, name, from, line)

  # [[gem, saving, other lines], …] of a boot's advice
  def gem_advice(rows, repeated)
    found = boot(segment(rows).with(repeated_loads: repeated)).advice.select { |one| one.kind == "gem" }
    found.map { |one| [one.subject, one.saving_ns, one.figures[:others]] }
  end

  def test_a_gem_that_other_code_requires
    rows = [load(1, kind: "bundler_require", path: "", name: "", wall_ns: 900_000),
            load(2, parent: 1, path: "/gems/first-1.0/lib/first.rb", wall_ns: 500_000),
            load(3, parent: 2, path: "/gems/shared-1.0/lib/shared.rb", name: "shared", wall_ns: 200_000,
                    from: "/gems/first-1.0/lib/first.rb"),
            load(4, parent: 3, kind: "yaml", path: "/gems/shared-1.0/x.yml", wall_ns: 20_000),
            load(5, parent: 1, path: "/gems/second-1.0/lib/second.rb", wall_ns: 300_000),
            load(6, path: "/srv/app/cart.rb", wall_ns: 10_000)]
    second = "/gems/second-1.0/lib/second.rb"
    assert_equal [["first", 500_000, []], ["second", 300_000, []]], gem_advice(rows, [])
    [again(5, "shared", second), again(5, "/gems/shared-1.0/lib/shared", second), again(5, "shared.rb", second),
     again(5, "../../shared-1.0/lib/./shared", second, kind: "require_relative")].each do |row|
      found = [["first", 300_000, []], ["second", 300_000, []]]
      assert_equal found, gem_advice(rows, [row]).sort, row.name
    end
    lines = [again(5, "first", second, 7), again(6, "first", "/srv/app/cart.rb", 3), again(0, "none", "/srv/x.rb")]
    assert_equal [["second", 300_000, []]], gem_advice(rows, lines), "the second gem requires the first one"
    assert_equal [["first", 500_000, [["/srv/app/cart.rb", 3]]], ["second", 300_000, []]],
                 gem_advice(rows, [lines[1], again(1, "first", "/usr/lib/bundler/runtime.rb")])
    assert_equal 500_000, gem_advice(rows, [lines[1], lines[1].dup]).first[1], "equal requests may have several rows"
    second_line = again(0, "first", "/srv/app/stock.rb", 9)
    endings = { [lines[1]] => "; /srv/app/cart.rb:3 asks for it, too", [] => "(/srv/main.rb:2)",
                [lines[1], second_line] => "; 2 other lines ask for it, too, as /srv/app/cart.rb:3" }
    endings.each do |more, ending|
      advice = boot(segment(rows).with(repeated_loads: more)).advice.find { |one| one.subject == "first" }
      assert_operator Pitwall::Show::BootWords.advice(advice, Pitwall::Show::Location.new), :end_with?, ending
    end
  end

  # Files ask for files. The reference loads them again without what asks for the gem.
  def test_savings_are_those_of_a_boot_without_the_gem
    random = Random.new(7)
    40.times do
      files = Array.new(14) { |at| at < 4 ? "/srv/app/a#{at}.rb" : "/gems/g#{at % 4}-1.0/lib/f#{at}.rb" }
      asks = files.to_h { |path| [path, files.sample(random.rand(4), random: random)] }
      rows, repeated = simulate(asks, files.first(2)) { false }
      found = boot(segment(rows).with(repeated_loads: repeated))
      %w[g0 g1 g2 g3].each do |gem|
        nodes = found.nodes.select { |node| found.owners.gem(node) == gem && found.owners.mine?(node.row.from) }
        outermost = nodes.reject { |node| (node.above & nodes).any? }
        kept = simulate(asks, files.first(2)) { |from, to| from.start_with?("/srv") && to.include?("/#{gem}-") }.first
        gone = rows.map(&:path) - kept.map(&:path)
        below = outermost.flat_map(&:subtree).select { |node| gone.include?(node.row.path) }
        assert_equal below.sum { |node| node.own[:wall] }, found.requirers.saving_ns(gem, outermost)
      end
    end
  end

  # [loads, repeated loads] of a program whose files ask for files. The block names requests that are left out.
  def simulate(asks, main, &left_out)
    rows = []
    repeated = []
    ids = {}
    visit = lambda do |parent, from, path|
      next if left_out.(from, path)
      next repeated << again(parent, path, from) if ids[path]

      id = ids[path] = ids.size + 1
      row = load(id, parent: parent, path: path, name: path, from: from)
      rows << row
      asks[path].each { |inner| visit.(id, path, inner) }
      row.wall_ns = 1_000 + rows.select { |one| one.parent == id }.sum(&:wall_ns)
    end
    main.each { |path| visit.(0, "/srv/main.rb", path) }
    [rows, repeated]
  end

  def test_uses_of_other_processes
    rows = [load(1), load(2)]
    child = segment([], pid: 2, used: true).with(file_uses: [Use.new("/srv/f1.rb", 1, 3)])
    parent = segment(rows, used: true).with(file_uses: rows.map { |row| Use.new(row.path, 0, 1) })
    uses = boot(parent, child).uses
    assert_equal ["/srv/f2.rb"], uses.unused_files.map(&:name)
  end
end

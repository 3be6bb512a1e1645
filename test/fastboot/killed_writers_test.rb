# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fastboot_program"
require "pitwall/fastboot/setup"
require "pitwall/fastboot/state"

# Boots that are killed, that can't write, that write at the same time, and files that change in every way between
# boots: each boot afterwards does what it does without the accelerator, and none has old code.
#
# PITWALL_KILLS=500: so many boots are killed (40).
class FastbootKilledWritersTest < Minitest::Test
  include FastbootProgram

  KILLS = Integer(ENV.fetch("PITWALL_KILLS", "40"))
  FILES = 24

  def setup
    super
    assert_nil Pitwall::Fastboot.unavailable
    Dir.mkdir(file("app"))
    @random = Random.new(Integer(ENV.fetch("TEST_SEED", "1")))
    @versions = Array.new(FILES, 100)
    FILES.times { |i| write(i) }
    write_files("app/main.rb" => "#{FILES}.times { |i| require_relative \"part\#{i}\" }\nputs RESULTS.join(' ')\n")
  end

  # All versions of a file have the same size.
  def write(i)
    padding = Array.new(40) { |n| "def part#{i}_#{n}(a, b = #{n}, *c) = a ? [b, \"text #{n}\", *c] : #{n}\n" }.join
    File.write(file("app/part#{i}.rb"), "(RESULTS ||= []) << #{@versions[i]}\n#{padding}")
  end

  # Changes some files. Their sizes stay the same, and their times may.
  def edit
    @random.rand(1..5).times do
      i = @random.rand(FILES)
      time = File.mtime(file("app/part#{i}.rb"))
      @versions[i] += 1
      write(i)
      File.utime(time, time, file("app/part#{i}.rb")) if @random.rand(3).zero?
    end
  end

  def assert_current(about = nil, main: file("app/main.rb"), **options)
    found = boot(main, **options)
    assert_equal ["#{@versions.join(" ")}\n", "", "exit 0"], [found.out, found.err, found.status], about
    found
  end

  def store(cache = file("cache")) = Pitwall::Fastboot::Store.new(cache)

  #: (Pitwall::Fastboot::Native::Pack) -> Array[Pitwall::Fastboot::Store::Version]
  def versions(pack = store.open) = Pitwall::Fastboot::Store.versions(pack)

  # The files whose newest code is in the pack.
  def parts = versions.select(&:newest).map(&:path).grep(/part\d+\.rb\z/)

  # Boots that end by a signal: at some time, after some bytes of the pack, or when a file has some size.
  def boot_killed(how)
    env = { "PITWALL_BOOT_CACHE" => file("cache") }
    options = { chdir: @dir, pgroup: true, %i[out err] => File::NULL }
    command = [RbConfig.ruby, "-I#{LIB}", "-rpitwall/fastboot", "-r#{KILLING}"]
    env["KILL_AT"] = how == :bytes ? @random.rand(40_000).to_s : "never"
    if how == :size
      FileUtils.rm_rf(file("cache")) if @random.rand(4).zero?
      options[:rlimit_fsize] = @random.rand(1..400_000)
      options[:rlimit_core] = 0
    end
    pid = Process.spawn(CLEAN.merge(env), *command, file("app/main.rb"), options)
    if how == :time
      sleep @random.rand * 0.15
      Process.kill(:KILL, -pid)
    end
    Process.wait(pid)
    $?.termsig
  end

  def test_killed_at_any_point
    ways = %i[time bytes bytes size]
    signals = Array.new(KILLS) do |i|
      edit
      signal = boot_killed(ways[i % ways.size])
      found = assert_current("boot #{i} after one killed by #{ways[i % ways.size]}, signal #{signal.inspect}")
      assert_nil found.counts["damaged"], found.counts.inspect
      signal
    end
    by_way = signals.each_index.select { |i| signals[i] }.map { |i| ways[i % ways.size] }.tally
    assert_operator by_way[:bytes].to_i, :>=, KILLS / 8, by_way.inspect
    assert_operator by_way[:size].to_i, :>=, 1, by_way.inspect
    assert_equal FILES, parts.size
  end

  # A child is forked while its parent writes, and ends before or after another process has written, too.
  FORKS = <<~'RUBY'
    require "pitwall/fastboot/store"
    Pitwall::Fastboot::Store.prepend(Module.new do
      def record(...)
        $pid ||= fork { sleep 0.01 until ARGV.first == "early" || File.exist?("written") }
        super
      end
    end)
    load "./app/main.rb"
    Pitwall::Fastboot.flush
    written = ARGV.first == "early" || system(RbConfig.ruby, "-rpitwall/fastboot", "-e", "load './other.rb'")
    File.write("written", "")
    Process.wait($pid)
    exit(written)
  RUBY

  def test_a_fork_while_the_pack_is_written
    write_files("other.rb" => "OTHER = 1", "forks.rb" => FORKS)
    %w[early late].each do |how|
      FileUtils.rm_rf(file("cache"))
      [nil, "edited"].each do |change|
        FileUtils.rm_f(file("written"))
        edit if change # the first boot makes the pack, the second one appends to it
        found = boot(file("forks.rb"), how, env: { "RUBYLIB" => LIB })
        assert_equal ["#{@versions.join(" ")}\n", "exit 0"], [found.out, found.status], found.err
        assert_empty Pitwall::Fastboot::State.check(store.open)["damaged"], [how, change].inspect
        assert_equal FILES, parts.size
      end
      assert_includes versions.map { |version| File.basename(version.path) }, "other.rb" if how == "late"
    end
  end

  # Limits on files' sizes act as a full disk does.
  def test_no_room
    12.times do |i|
      edit
      limit = @random.rand(1..300_000)
      trap = "-e", "trap(:XFSZ, 'IGNORE'); Process.setrlimit(:FSIZE, #{limit}); load ARGV.shift"
      found = boot("-r#{KILLING}", *trap, file("app/main.rb"), env: { "KILL_AT" => "never" })
      assert_equal ["#{@versions.join(" ")}\n", "exit 0"], [found.out, found.status], "limit #{limit}: #{found.err}"
      assert_current("after a limit of #{limit}") if i.odd?
    end
    assert_empty Pitwall::Fastboot::State.check(store.open)["damaged"]
  end

  # The pack is used, and not written. Nobody keeps root from writing, so another user runs the program.
  def test_a_folder_that_may_not_be_written
    assert_current
    File.chmod(0o755, @dir)
    File.chmod(0o555, file("cache"))
    edit
    before = File.binread(store.path)
    env = { "PITWALL_BOOT_CACHE" => file("cache"), "HOME" => nil }
    program = "at_exit { Pitwall::Fastboot.flush; p Pitwall::Fastboot.stats }; load ARGV[0]"
    result = capture(env, RbConfig.ruby, "--disable-gems", "-e", "#{OTHER_USER}exec(*ARGV)",
                     RbConfig.ruby, "-I#{LIB}", "-rpitwall/fastboot", "-e", program, file("app/main.rb"))
    assert_match(/\A#{@versions.join(" ")}\n.*hit/m, result.out, result.err)
    assert_equal before, File.binread(store.path)
  ensure
    File.chmod(0o755, file("cache"))
  end

  def test_odd_paths
    ["new\nline", "not \xFF UTF-8", "a\\b'\"$(c)", "ünï", "é" * 100].each do |name|
      app = File.join(@dir.b, name.b)
      FileUtils.cp_r(file("app"), app)
      boots = Array.new(2) { assert_current(name, main: File.join(app, "main.rb"), cache: File.join(app, "cache")) }
      assert_operator hits(boots[1]), :>=, FILES, boots.map(&:counts).inspect
    end
  end

  def test_many_writers_at_once
    2.times do |round|
      edit
      command = [RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rpitwall/fastboot", file("app/main.rb")]
      env = CLEAN.merge("PITWALL_BOOT_CACHE" => file("cache"))
      children = Array.new(32) do |i|
        Process.spawn(env, *command, out: file("out#{i}"), err: file("err#{i}"), chdir: @dir)
      end
      statuses = children.map { |pid| Process.wait2(pid).last.exitstatus }
      assert_equal [0], statuses.uniq
      32.times do |i|
        said = %w[out err].map { |name| File.read(file("#{name}#{i}")) }
        assert_equal ["#{@versions.join(" ")}\n", ""], said, "round #{round}"
      end
      pack = store.open
      pack.versions.each_index { |number| refute_nil pack.body(number) }
      assert_equal pack.facts[0], pack.facts[1]
      assert_equal FILES.times.map { |n| file("app/part#{n}.rb").b }.sort, parts.sort
    end
    assert_empty Dir[file("cache/*.new")]
  end

  # Files that come from the future or the past, and are changed without a new size or time.
  def test_times_set_back
    [4_000_000_000, 0, 1, Time.now.to_i + 3600, -1].each do |time|
      FILES.times { |i| File.utime(time, time, file("app/part#{i}.rb")) }
      assert_current(time)
      edit
      FILES.times { |i| File.utime(time, time, file("app/part#{i}.rb")) }
      assert_current(time)
    end
  end

  # As Capistrano deploys: `current` is a link that is replaced.
  def test_a_link_to_releases
    Dir.mkdir(file("releases"))
    places = "puts __dir__, $LOADED_FEATURES.grep(/part1.rb/), method(:part1_1).source_location\n"
    3.times do |i|
      edit
      FileUtils.cp_r(file("app"), file("releases/#{i}"))
      File.write(file("releases/#{i}/main.rb"), places, mode: "a")
    end
    kept = Array.new(3) { |i| plain(file("releases/#{i}/main.rb")).out.lines.first }
    [0, 1, 0, 2, 1, 2].each do |i|
      File.symlink("releases/#{i}", file("next"))
      File.rename(file("next"), file("current"))
      expected = plain(file("current/main.rb"))
      assert_equal kept[i], expected.out.lines.first
      assert_same expected, boot(file("current/main.rb")), "release #{i}"
    end
    # A release that is deleted and comes again under the same name.
    FileUtils.rm_rf(file("releases/2"))
    edit
    FileUtils.cp_r(file("app"), file("releases/2"))
    assert_current(main: file("current/main.rb"))
  end

  def test_branches_and_copies
    author = %w[-c user.name=n -c user.email=e]
    git = ->(*words) { capture({ "HOME" => @dir }, "git", "-C", file("app"), *author, *words) }
    git.("init", "-q", "-b", "one")
    branches = %w[one two].to_h do |name|
      git.("checkout", "-q", "-B", name)
      edit
      git.("add", ".")
      git.("commit", "-q", "-m", name)
      [name, @versions.dup]
    end
    boots = %w[one two one two one].map do |name|
      assert git.("checkout", "-q", name).status.success?
      @versions = branches[name].dup
      assert_current(name)
    end
    # The pack keeps both branches' code.
    assert_equal [nil] * 3, boots.drop(2).map { |found| found.counts["stored"] }, boots.map(&:counts).inspect

    assert system("cp", "-a", file("app"), file("copy"))
    edit
    assert_current
    @versions = branches["one"].dup
    assert_current(main: file("copy/main.rb"))
    File.rename(file("app"), file("old"))
    File.rename(file("copy"), file("app"))
    assert_current
  end

  # A thousand edits, each written to the pack, then boots.
  def test_edits_do_not_make_the_pack_grow
    program = <<~'RUBY'
      pack = nil
      sizes = Array.new(1000) do |i|
        part = "#{ARGV[0]}/part#{i % 20}.rb"
        File.write(part, File.read(part).sub(/<< \d+/, "<< #{i + 200}"))
        load part
        raise "old code" unless RESULTS.last == i + 200
        Pitwall::Fastboot.flush
        File.size(pack ||= Dir["#{ENV["PITWALL_BOOT_CACHE"]}/*.pack"].first)
      end
      p sizes.max, sizes.last, sizes.each_cons(2).count { |a, b| b < a }
    RUBY
    assert_current
    used = versions.sum(&:size)
    result = boot("-e", program, file("app"))
    most, last, rewritten = result.out.lines.map(&:to_i)
    assert_equal "exit 0", result.status, result.err
    assert_operator [most, last].max, :<=, (used * 1.5) + (400 * 1024), result.out
    assert_operator rewritten, :>=, 3
    assert_equal FILES, parts.size
  end

  def test_a_few_changed_files_are_compiled_alone
    assert_current
    20.times { |i| (@versions[i] += 1) && write(i) }
    changed = assert_current.counts
    assert_equal [20, 20], changed.values_at("changed", "stored"), changed.inspect
    assert_operator changed.values_at("hit", "hit_by_content").compact.sum, :>=, FILES - 20, changed.inspect
    assert_nil assert_current.counts["stored"]
  end

  # Real files: the smaller a file, the more of its record is its path.
  def test_a_pack_is_little_larger_than_its_code
    names = %w[optparse erb uri net/http fileutils tempfile tsort delegate forwardable time find open3 shellwords yaml]
    2.times { boot("-e", "ARGV.each { |name| require name }", *names) }
    pack = store.open
    code = versions(pack).sum(&:size)
    assert_operator code, :>, 500_000
    assert_operator pack.facts[0], :<=, code * 1.3
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "scratch_repository"

# The cache: entries are complete, one process builds an entry at a time, and the size is limited.
class WorkspaceStoreTest < Minitest::Test
  include ScratchRepository

  Store = Pitwall::Workspace::Store

  def store = Store.new(@cache).tap { |made| (@stores ||= []) << made }

  def teardown
    @stores&.each(&:close)
    super
  end

  def test_places
    assert_equal "/x/workspace", Store.place("PITWALL_CACHE" => "/x", "XDG_CACHE_HOME" => "/y", "HOME" => "/h")
    assert_equal "/y/pitwall/workspace", Store.place("XDG_CACHE_HOME" => "/y", "HOME" => "/h", "PITWALL_CACHE" => "")
    assert_equal "/h/.cache/pitwall/workspace", Store.place("HOME" => "/h", "XDG_CACHE_HOME" => "relative")
    write({ "file" => "" }, dir: @root)
    one = Store.new(File.join(@root, "file/cache"))
    assert one.temporary
    assert_path_exists one.root
    one.close
    refute_path_exists one.root
    commit("a" => "1")
    Pitwall::Workspace.open(dir: @repo, place: File.join(@root, "file/cache"),
                            environment: clean_environment) do |workspace|
      assert_equal "1", File.read(File.join(workspace.subjects([side(rev: "HEAD")]).first.dir, "a"))
      assert_includes workspace.notes.first, "PITWALL_CACHE"
    end
  end

  def test_keys
    assert_equal Store.key("a", ["b", nil], { "x" => "1", "y" => "2" }),
                 Store.key("a", ["b", nil], { "y" => "2", "x" => "1" })
    keys = [Store.key("ab", "c"), Store.key("a", "bc"), Store.key(["ab"], "c"), Store.key("ab", nil, "c"),
            Store.key("ab", "", "c"), Store.key("é")]
    assert_equal keys, keys.uniq
    assert_equal [20], keys.map(&:size).uniq
  end

  def test_made_once_and_kept
    made = 0
    build = ->(folder) { made += 1; File.write(File.join(folder, "x"), "1" * 10_000) }
    first = store.fetch("trees", "k", &build)
    assert_equal [first, first], [store.fetch("trees", "k", &build), @stores.first.fetch("trees", "k", &build)]
    assert_equal 1, made
    assert_operator File.read("#{first}.lock").to_i, :>=, 10_000
    @stores.each(&:close)
    store.fetch("trees", "k", valid: ->(path) { !File.exist?(File.join(path, "x")) || made > 1 }, &build)
    assert_equal 2, made
  end

  def test_a_failure_leaves_nothing
    assert_raises(Interrupt) do
      store.fetch("trees", "k") { |folder| File.write(File.join(folder, "x"), "") && raise(Interrupt) }
    end
    assert_empty entries("trees")
    @stores.first.close
    assert_empty Dir.children(File.join(@cache, "building"))
  end

  def test_two_processes_build_once
    readers = Array.new(2) do
      IO.popen([RUBY, "-I#{Checkout::ROOT}/lib", "-rpitwall/workspace", "-e", <<~RUBY, @cache])
        store = Pitwall::Workspace::Store.new(ARGV[0])
        store.fetch("trees", "k") do |folder|
          sleep 0.3
          File.write(File.join(folder, "by"), Process.pid.to_s)
          puts "built"
        end
        puts File.read(File.join(ARGV[0], "trees/k/by"))
      RUBY
    end
    lines = readers.map { |reader| reader.read.lines(chomp: true) }
    readers.each(&:close)
    assert_equal 1, lines.flatten.count("built")
    assert_equal 1, lines.map(&:last).uniq.size
  end

  def test_what_a_killed_process_left_is_swept
    reader = IO.popen([RUBY, "-I#{Checkout::ROOT}/lib", "-rpitwall/workspace", "-e", <<~RUBY, @cache])
      Pitwall::Workspace::Store.new(ARGV[0]).fetch("trees", "k") do |folder|
        File.write(File.join(folder, "half"), "")
        puts "half"
        $stdout.flush
        sleep
      end
    RUBY
    reader.gets
    store.fetch("trees", "other") { nil } # while it lives, its half is left alone
    assert_equal 1, Dir[File.join(@cache, "building/*/k/half")].size
    Process.kill("KILL", reader.pid)
    reader.close
    path = store.fetch("trees", "k") { |folder| File.write(File.join(folder, "whole"), "") }
    assert_equal ["whole"], Dir.children(path)
    assert_empty Dir[File.join(@cache, "building/*/k/half")]
  end

  def test_the_least_recently_used_goes_first_and_nothing_in_use
    one = store
    paths = %w[a b c d].map do |key|
      one.fetch("trees", key) { |folder| File.write(File.join(folder, "x"), "1" * 100_000) }
    end
    one.close
    %w[c a d b].each_with_index do |key, age|
      File.utime(Time.now, Time.now - 1000 + age, File.join(@cache, "trees/#{key}.lock"))
    end
    store.fetch("trees", "c") { flunk }
    File.utime(Time.now, Time.now - 2000, File.join(@cache, "trees/c.lock"))
    left = Pitwall::Workspace.prune(limit_bytes: 250_000, place: @cache)
    assert_equal [paths[1], paths[2]], entries("trees").sort # c is in use, b was used last
    assert_operator left, :<=, 250_000
    @stores.each(&:close)
    assert_equal 0, Pitwall::Workspace.prune(limit_bytes: 0, place: @cache)
    assert_empty entries("trees")
    assert_equal 0, Pitwall::Workspace.prune(place: File.join(@root, "nothing"))
  end

  def test_the_limit_holds_for_what_is_built
    commit("a" => "1" * 50_000)
    commit("a" => "2" * 50_000)
    subjects(side(rev: "HEAD")) { nil }
    subjects(side(rev: "HEAD~1"), cache_limit_bytes: 1) { |list| assert_path_exists list.first.dir }
    assert_equal 1, entries("trees").size
  end

  # Ctrl-C during a build: SIGINT to the process group, as from a terminal, and to the process alone.
  def test_an_interrupt_leaves_no_half_tree_and_no_process
    commit("x.gemspec" => "Gem::Specification.new { |s| s.name, s.version, s.summary, s.authors, " \
                          "s.extensions = 'x', '1', 'x', ['a'], ['ext/extconf.rb'] }",
           "Rakefile" => "task(:compile) { sh %(sh -c 'echo $$ > #{@root}/pid; trap \"\" TERM; sleep 600') }")
    %w[INT TERM].each do |signal|
      FileUtils.rm_f(File.join(@root, "pid"))
      options = { pgroup: true, out: File::NULL, err: File.join(@root, "err") }
      ruby = [RUBY, "-I#{Checkout::ROOT}/lib", "-rpitwall/workspace"]
      pid = Process.spawn(CommandLine::CLEAN, *ruby, "-e", <<~RUBY, @repo, @cache, **options)
        trap("INT", "DEFAULT")
        Pitwall::Workspace.open(dir: ARGV[0], place: ARGV[1]) do |workspace|
          workspace.subjects([Pitwall::Workspace::Side.new(rev: "HEAD")])
        end
      RUBY
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
      sleep 0.02 until File.size?(File.join(@root, "pid")) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      Process.kill(signal, pid)
      Process.wait(pid)
      assert_equal Signal.list[signal], $?.termsig, File.read(File.join(@root, "err"))
      assert gone?(File.read(File.join(@root, "pid")).to_i)
      assert_empty entries("trees")
      assert_empty Dir.children(File.join(@cache, "building"))
    end
  end

  # The process may be a zombie that its parent hasn't waited for yet.
  def gone?(pid)
    6000.times do
      return true unless File.read("/proc/#{pid}/stat").match?(/\) [^ZX]/)

      sleep 0.01
    end
    false
  rescue Errno::ENOENT, Errno::ESRCH
    true
  end
end

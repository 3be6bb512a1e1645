# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../oracle/syscalls"
require_relative "../support/random_syscalls"
require "pitwall/analyse"
require "pitwall/record/syscall_log"
require "stringio"
require "tmpdir"

# All seven passes of the study in one stream, compared with the passes one after another.
class SyscallPatternsTest < Minitest::Test
  Patterns = Pitwall::Analyse::SyscallPatterns
  Report = Pitwall::Analyse::SyscallReport

  def test_random_logs_collapse_as_the_passes_one_after_another_do
    300.times do |seed|
      lines = RandomSyscalls.new(seed).lines([5, 40, 400][seed % 3]).map(&:b)
      report, collapsed = collapse(lines)
      assert_equal SyscallOracle.collapse(lines), collapsed, "seed #{seed}"
      assert_equal lines.size, report.calls
      assert_equal lines.size, report.passes.sum(&:calls) + report.passes.last.left
    end
  end

  # Output of the study.
  def test_the_studys_examples
    load = %w[open fstat64 close open fstat64 fgetxattr fgetxattr close]
    yaml = %w[open fstat64 fgetxattr fgetxattr close]
    assert_collapsed ["%LOAD\t/foo.rb"], load.map { |call| "#{call}\t/foo.rb" }
    assert_collapsed ["%YAML\t/foo.yml"], yaml.map { |call| "#{call}\t/foo.yml" }
    path = "/opt/rubies/2.3.3/lib/ruby/site_ruby/2.3.0/rubygems/exceptions.rb"
    walk = path.scan(%r{/[^/]+}).each_with_object([]) do |part, found|
      found << "lstat64\t#{found.last.to_s.delete_prefix("lstat64\t")}#{part}"
    end
    assert_collapsed ["close\t#{path}", "%RRPI\t#{path}"], ["close\t#{path}", *walk]
    scan = %w[site_ruby/2.3.0 site_ruby/2.3.0/x86_64-darwin16 site_ruby vendor_ruby/2.3.0].map do |folder|
      "open\t/opt/rubies/2.3.3/lib/ruby/#{folder}/stringio.rb"
    end
    assert_collapsed ["%SCAN\tstringio.rb"], scan
    stats = %w[assets controllers].map { |folder| "stat64\t/gems/x/app/#{folder}/teaspoon/bundle/bundle_helper.rb" }
    assert_collapsed ["%ASDS\tbundle_helper.rb\t2"], stats
    assert_collapsed ["%STLS\t/a/b"], ["stat64\t/a/b", "lstat64\t/a/b"]
    gem = %w[CHANGELOG CONTRIBUTORS MIT-LICENSE README.md README.md lib/active_merchant lib/active_merchant.rb
             lib/active_merchant/billing lib/active_merchant/billing.rb]
    assert_collapsed ["%SGEM\t(some-gem)\t9"], gem.map { |name| "stat64\t#{name}" }
  end

  # The study's scripts differ from its rules: they drop the last lines of some logs, and misspell an excluded folder.
  def test_the_end_of_the_log_is_not_dropped
    load = %w[open fstat64 close open fstat64 fgetxattr fgetxattr close].map { |call| "#{call}\t/a.rb" }
    assert_collapsed ["%LOAD\t/a.rb", "read\t/b"], [*load, "read\t/b"]
    assert_collapsed ["stat64\t/x"], ["stat64\t/x"]
    assert_collapsed ["%RRPI\t/opt"], ["lstat64\t/opt"]
    assert_collapsed load.first(7), load.first(7)
    assert_collapsed ["%SGEM\t(some-gem)\t9"], ["stat64\tREADME"] * 9
  end

  def test_folders_that_are_no_gems_are_excluded_as_they_are_spelt
    %w[config csv fonts images javascripts stylesheets svg].each do |name|
      lines = ["stat64\t#{name}"] + Array.new(10) { |n| "stat64\t#{name}/#{n}" }
      assert_collapsed lines, lines
    end
    assert_collapsed ["%SGEM\t(some-gem)\t11"],
                     ["stat64\tjavascsripts", *Array.new(10) { |n| "stat64\tjavascsripts/#{n}" }]
  end

  # A marker of one call explains nothing, because a pattern takes two calls.
  def test_a_walk_of_one_call_explains_nothing
    report, = collapse(["lstat64\t/opt", "read\t/b", "lstat64\t/opt", "lstat64\t/opt/x"])
    assert_equal [2, 3, 2, 1],
                 [report.markers["%RRPI"], report.passes.find { |pass| pass.name == "%RRPI" }.calls, report.explained,
                  report.passes.last.left]
  end

  def test_what_counts_as_explained_takes_two_calls_and_has_advice
    Patterns.new.each do |pattern|
      assert_predicate pattern, :explains?, pattern.name
      assert_operator pattern.least, :>=, 2, pattern.name
    end
  end

  def test_markers_are_grouped_by_what_they_have_in_common
    objects = Array.new(108) { |n| format("lstat64\t/gems/some-gem/.git/objects/%02x", n) }
    walks = objects.flat_map do |line|
      ["lstat64\t/gems", "lstat64\t/gems/some-gem", "lstat64\t/gems/some-gem/.git",
       "lstat64\t/gems/some-gem/.git/objects", line, "read\t/x"]
    end
    report, = collapse(walks + ["lstat64\t/usr", "lstat64\t/usr/lib", "read\t/x"] * 2)
    groups = report.passes.find { |pass| pass.name == "%RRPI" }.groups(5)
    assert_equal [["/gems/some-gem/.git/objects/", 108], ["/usr/lib", 2]], groups.map { |row| [row.path, row.count] }
  end

  # Each part begins where no pattern can match across, and is read by another process.
  def test_parts_of_a_log_add_up_to_the_whole
    Dir.mktmpdir do |dir|
      12.times do |seed|
        lines = RandomSyscalls.new(seed).lines(3000)
        File.binwrite(path = "#{dir}/log", lines.map(&:b).join("\n") << "\nhalf\xFF line\n".b)
        patterns = Patterns.new(study: true)
        whole = Report.of(Pitwall::Record::SyscallLog.open(path), patterns: patterns)
        log = Pitwall::Record::SyscallLog.open(path)
        parts = log.parts(3, least: 0) { |name| patterns.separator?(name) }
        assert_equal 3, parts.size
        reports = parts.map { |part| Report.of(part, patterns: patterns) }
        sum = reports.drop(1).inject(reports.first) do |first, other|
          first.merge(Marshal.load(Marshal.dump(other.part)))
        end
        assert_equal 1, parts.sum(&:unreadable)
        %i[calls explained markers by_call processes].each do |what|
          assert_equal whole.public_send(what), sum.public_send(what), "#{what}, seed #{seed}"
        end
        assert_equal whole.passes.map { |pass| [pass.calls, pass.left, pass.sizes, pass.groups(8)] },
                     sum.passes.map { |pass| [pass.calls, pass.left, pass.sizes, pass.groups(8)] }
        assert_equal whole.rest_by_name(10), sum.rest_by_name(10)
      end
    end
  end

  def test_a_part_begins_with_no_call_of_a_pattern
    patterns = Patterns.new(study: true)
    assert patterns.separator?("read")
    %w[open close stat64 fgetxattr].each { |name| refute patterns.separator?(name), name }
    refute Patterns.new.separator?("write") # %SAME looks at the whole log
  end

  def test_threads_are_told_apart
    calls = Array.new(2) { |tid| %w[stat64 lstat64].map { |name| call(name, "/a/#{tid}", tid: tid) } }
    report = Report.of(calls[0].zip(calls[1]).flatten, patterns: Patterns.new(study: true))
    assert_equal [2, 4], [report.markers["%STLS"], report.explained]
  end

  def test_users_patterns
    user = [{ "name" => "%TMPL", "match" => "sequence", "calls" => "stat open read+ close", "path" => '\.erb\z',
              "explanation" => "templates", "advice" => "compile them", "before" => "%STLS" },
            { "name" => "%OWN", "match" => "run", "calls" => "getattrlist", "least" => 3,
              "explanation" => "of another system" }]
    lines = ["stat64\t/a.erb", "open\t/a.erb", "read\t/a.erb", "read\t/a.erb", "close\t/a.erb",
             *(["getattrlist\t/x"] * 3), "stat64\t/a.rb", "open\t/a.rb", "read\t/a.rb", "close\t/a.rb"]
    patterns = Patterns.new(user: user, study: true)
    report, collapsed = collapse(lines, patterns: patterns)
    assert_equal ["%TMPL\t/a.erb", "%OWN\t/x", *lines.last(4)], collapsed
    assert_equal 5, report.explained # %OWN has no advice
    assert_equal %w[%ASDS %TMPL %STLS %OWN], patterns.names.last(4)
  end

  def test_what_a_user_writes_wrong_is_one_line_that_says_what
    good = { "name" => "%X1", "match" => "run", "calls" => "read", "explanation" => "x" }
    { {} => /name is missing/, good.merge("name" => "x") => /a name is %/,
      good.merge("match" => "magic") => /match magic: it takes sequence, walk/,
      good.merge("calls" => nil) => /calls is missing/,
      good.merge("colour" => 1) => /unknown key colour/, good.merge("least" => 1) => /least is a number from 2/,
      good.merge("path" => "(") => /cannot read the expression/, good.merge("name" => "%LOAD") => /already/,
      good.merge("before" => "%NONE") => /no such pattern/,
      good.merge("match" => "sequence", "calls" => "open") => /from 2 to/,
      good.merge("match" => "sequence", "calls" => "open? close*") => /one of its calls must occur/,
      good.merge("calls" => "re ad-x") => /no call's name/,
      good.merge("match" => "sequence", "calls" => "open re%ad") => /cannot read the call/,
      [] => /a pattern is a table/, good.merge("advice" => "") => /advice is a text/ }.each do |entry, expected|
      error = assert_raises(Pitwall::UsageError, entry.inspect) { Patterns.new(user: [entry]) }
      assert_match expected, error.message
      assert_equal 1, error.message.lines.size
    end
    assert_raises(Pitwall::UsageError) { Patterns.new(user: "x") }
  end

  # Dir.children of Ruby 3.1 on Linux, recorded by strace: it rewinds before it reads.
  def test_rubys_plainest_listing
    trace = <<~'LOG'
      7 openat(AT_FDCWD, "/srv/d", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY) = 5
      7 newfstatat(5, "", {st_mode=S_IFDIR|0755, st_size=4096, ...}, AT_EMPTY_PATH) = 0
      7 lseek(5, 0, SEEK_SET)  = 0
      7 getdents64(5, 0x555a752717a0 /* 3 entries */, 32768) = 72
      7 getdents64(5, 0x555a752717a0 /* 0 entries */, 32768) = 0
      7 close(5)               = 0
    LOG
    assert_equal ["%DIRS\t/srv/d"], collapse(trace.lines(chomp: true), patterns: Patterns.new).last
  end

  # Calls that the advised fix needs are not saved.
  def test_what_a_fix_would_save_is_no_more_than_it_can
    names = %w[openat getdents64 getdents64 close]
    list = ->(path, pid = 0) { names.map { |name| call(name, path, pid: pid, tid: pid) } }
    other = call("getcwd", "/x")
    dirs = ->(calls) { Report.of(calls).passes.find { |pass| pass.name == "%DIRS" } }
    figures = ->(calls) { dirs.(calls).to_h.values_at(:calls, :saved_calls, :saves_at_most) }
    assert_equal [12, 4, false],
                 figures.([*list.("/a"), other, *list.("/b"), other, *list.("/a")])
    assert_equal [4, 0, false], figures.(list.("/a"))
    assert_equal [4, true], dirs.([*list.("/a", 1), *list.("/a", 2)]).to_h.values_at(:saved_calls, :saves_at_most)

    asked = Array.new(20) { |n| call("stat", "/a/#{n}.rb") }
    chek = Report.of(asked).passes.find { |pass| pass.name == "%CHEK" }
    assert_equal [20, 14, true], [chek.calls, chek.saved_calls, chek.saves_at_most]
    at_most = Patterns.new.select(&:at_most?).map(&:name)
    assert_empty %w[%RRPI %REAL %PEEK %CHEK %SPEC] - at_most
    refute_includes at_most, "%TINY"
  end

  # A path may be any bytes, and a pattern's expression must accept them.
  def test_paths_that_are_no_text
    lines = ["stat64\t/a/\xFF.erb".b, "lstat64\t/a/\xFF.erb".b, "open\t/a\tb".b, "open\t/c/a\tb".b]
    entry = { "name" => "%EE", "match" => "run", "calls" => "read", "path" => "é", "explanation" => "x" }
    _, collapsed = collapse(lines, patterns: Patterns.new(study: true, user: [entry]))
    assert_equal ["%STLS\t/a/\xFF.erb".b, "%SCAN\ta\tb".b], collapsed
  end

  private

  def call(name, path, **more) = Pitwall::Record::Syscall.new(name: name, path: path, pid: 0, tid: 0, **more)

  def collapse(lines, patterns: Patterns.new(study: true))
    collapsed = []
    log = Pitwall::Record::SyscallLog.open(StringIO.new(lines.map { |line| "#{line}\n".b }.join))
    [Report.of(log, patterns: patterns) { |line| collapsed << line }, collapsed]
  end

  def assert_collapsed(expected, lines) = assert_equal(expected, collapse(lines).last)
end

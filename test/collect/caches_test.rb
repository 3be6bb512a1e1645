# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/native_extension"
require "json"
require "pitwall/record/vm_counter"

# Which lines empty caches: every planted change is found at its line, and no other line is blamed.
class CachesTest < Minitest::Test
  include CommandLine

  FIXTURES = File.join(Checkout::ROOT, "test/fixtures/caches")

  # Kinds that only Ruby's counters tell of.
  COUNTED = %w[shape_made class_variable_set class_changed].freeze

  def planted(*names)
    names.map { |name| File.join(FIXTURES, name) }.flat_map do |file|
      File.readlines(file).each_with_index.flat_map do |text, at|
        marks = text[/#! (.*)/, 1] or next []
        marks.split("; ").filter_map do |mark|
          rubies, mark = mark.split(" ", 2) if mark.match?(/\A3/)
          next if rubies && (rubies == "3.1") != (RUBY_VERSION < "3.2")

          [File.basename(file), at + 1, *mark.strip.split(" ", 2)]
        end
      end
    end
  end

  def caches(*options, program: File.join(FIXTURES, "planted.rb"), status: 0, env: {})
    out = file("caches.json")
    run = pitwall("caches", "--record", file("x.pit"), "--format", "json", "--out", out, *options, "--", "ruby",
                  "-W0", "-I", File.join(Checkout::ROOT, "lib"), program, env: env)
    assert_equal status, run.status.exitstatus, run.err
    JSON.parse(File.read(out))
  end

  # Ruby's counters have the same increase, and nothing has a line.
  def test_counts_without_lines
    program = file("program.rb")
    File.write(program, <<~'RUBY')
      5.times { |i| Object.const_set(:"C#{i}", 1) }
      5.times { |i| [Object.const_get(:"C#{i}")] }
    RUBY
    counted, lined = [%w[--count], %w[--lines]].map { |options| caches(*options, program: program) }
    assert_empty counted.fetch("findings")
    assert_empty counted.fetch("unblamed")
    name = RUBY_VERSION < "3.2" ? "global_constant_state" : "constant_cache_misses"
    assert_equal lined.fetch("counters").fetch(name), counted.fetch("counters").fetch(name)
    text = ->(recording) { pitwall("report", file(recording), "--view", "caches").out }
    refute_match(/counted only/, text.call("x.pit")) # of the run with lines
    pitwall("caches", "--count", "--record", file("y.pit"), "--", "ruby", "-e", "1")
    assert_match(/^Changes were counted only, without their lines\.$/, text.call("y.pit"))
  end

  def test_a_count_has_no_lines
    run = pitwall("caches", "--count", "--after", "boot", "--", "ruby", "-e", "1")
    assert_equal 2, run.status.exitstatus
    assert_match(/^pitwall: --count: --after needs the lines of changes: leave one of the two out$/, run.err)
    run = pitwall("caches", "--count", "--fail-if", "invalidation", "--record", file("x.pit"), "--", "ruby", "-e", "1")
    assert_match(/--count does not count invalidations/, run.err)
    refute_equal 0, run.status.exitstatus
  end

  def test_every_planted_change_is_found_at_its_line
    report = caches
    own = report["own_counters"]
    planted = planted("autoloaded.rb", "planted.rb")
    # From 3.4 on Ruby itself prepends a module to Kernel when the first Ractor begins.
    rows = report["findings"].reject { |row| row["subject"].include?("RactorRequire") }
    found = rows.select { |row| own.include?(row["counter"]) }.flat_map do |row|
      [[File.basename(row["path"]), row["line"], row["kind"], row["subject"]]] * row["count"]
    end
    assert_operator planted.map { |_, line, *| line }.uniq.size, :>=, 40
    assert_equal [], planted - found, "not found"
    assert_equal [], found - planted, "blamed falsely"
    assert_equal planted.tally, found.tally, "counted once"
    assert_equal 0, report["lost"]
  end

  def test_more_kinds_and_changes_from_c
    skip "peer absent: a C compiler (apt-get install gcc libc6-dev)" unless NativeExtension.compiler?

    NativeExtension.compile(File.join(FIXTURES, "own.c"), file("own.so"))
    report = caches("--after", "boot", program: File.join(FIXTURES, "kinds.rb"),
                                       env: { "TEST_OWN_C" => file("own.so") })
    here, elsewhere = report["findings"].partition { |row| row["path"].end_with?("kinds.rb") }
    planted = planted("kinds.rb").map { |_, line, kind, subject| [line, kind, subject.to_s] }
    found = here.map { |row| [*row.values_at("line", "kind", "subject"), row["counter"]] }
    assert_equal [], planted - found.map { |row| row.first(3) }, "not found"
    own = found.select { |row| report["own_counters"].include?(row.last) }.map { |row| row.first(3) }
    assert_equal [], own - planted, "blamed falsely"
    assert_equal own.uniq, own, "counted once"
    counted = found.map { |row| row.first(2) }.select { |_, kind| COUNTED.include?(kind) && kind != "shape_made" }
    allowed = planted.map { |line, kind, _| [line, kind] } + class_variables
    assert_equal [], counted.uniq - allowed, "blamed falsely"
    tall = elsewhere.find { |row| row["subject"] == "a OpenStruct.tall" }
    line = File.readlines(File.join(FIXTURES, "kinds.rb")).index { |text| text.include?("open.tall") } + 1
    assert(tall["stack"].any? { |frame| frame["path"].end_with?("kinds.rb") && frame["line"] == line })
  end

  # Lines that set class variables. Some Rubies make a shape there.
  def class_variables
    File.readlines(File.join(FIXTURES, "kinds.rb")).each_with_index.filter_map do |text, at|
      [at + 1, "class_variable_set"] if text.include?("class_variable_set(")
    end
  end

  def test_blamed_counts_add_up_to_the_counters
    report = caches
    assert_equal RubyVM.stat.keys.map(&:to_s).sort, (report["counters"].keys & Pitwall::Record::STAT_COUNTERS).sort
    assert_equal Pitwall::Record::STAT_COUNTERS - report["counters"].keys, report["not_counted"]
    counters = report["counters"].reject { |name, _| report["own_counters"].include?(name) }
    counters.each do |name, count|
      next unless Pitwall::Record::VM_COUNTERS.fetch(name).part

      blamed = report["findings"].select { |row| row["counter"] == name }.sum { |row| row["count"] }
      assert_equal count, blamed + report["pitwall"].fetch(name, 0), name
    end
    assert_equal({}, report["unblamed"])
  end

  # More than a million lines that change nothing, then class variables again and again.
  QUIET = <<~'RUBY'
    require "pitwall"
    class Base; end
    class Derived < Base; end
    count = 0
    while count < 700_000
      count += 1
      nil
    end
    mark = ->(n) { [Derived, Base].each { |one| one.class_eval("@@v#{n} = 1\nnil", "marks.rb", 7) } }
    40.times do |n|
      Pitwall.request(route: "a") { mark.call(n) }
    end
  RUBY
  private_constant :QUIET

  def test_lines_rest_while_nothing_changes
    program = file("quiet.rb")
    File.write(program, QUIET)
    count = lambda do |report|
      report["findings"].select { |row| row["kind"] == "class_variable_set" && row["path"] == "marks.rb" }
                        .sum { |row| row["count"] }
    end
    usual, always = [[], ["--lines"]].map { |options| caches(*options, program: program) }
    assert_includes 1..39, count.call(usual)
    assert_equal 40, count.call(usual) + usual["unblamed"].fetch("global_cvar_state")
    assert_equal [40, {}], [count.call(always), always["unblamed"].slice("global_cvar_state")]
  end

  # After so many requests lines are compared only if something changes then, and changes again.
  def test_lines_are_not_compared_before_the_part_that_is_asked_for
    program = file("late.rb")
    File.write(program, QUIET.sub("700_000", "7"))
    late = caches("--after", "10 requests", program: program)
    set = ->(report) { report["findings"].select { |row| row["kind"] == "class_variable_set" } }
    assert_equal [["marks.rb", 7]], set.call(late).map { |row| row.values_at("path", "line") }.uniq
    assert_includes 1..30, set.call(late).sum { |row| row["count"] }
    assert_empty set.call(caches("--after", "40 requests", program: program))
  end

  # Without lines nobody knows who set the constant. The class that is reopened next is not new.
  def test_a_reopened_class_was_not_made
    program = file("reopened.rb")
    File.write(program, "class Made; end\nFOO = 1\nclass String\n  nil\nend\n")
    rows = caches("--no-lines", program: program)["findings"].select { |row| row["kind"] == "class_made" }
    assert_equal ["Made"], rows.map { |row| row["subject"] }.uniq
  end

  def test_the_part_after_boot
    program = file("warm.rb")
    File.write(program, <<~RUBY)
      require "pitwall"
      class Early; end
      Pitwall.request(route: "a") { Late = Class.new }
      2.times { Pitwall.request(route: "a") { Object.new.define_singleton_method(:a) {} } }
    RUBY
    options = ["--after", "boot"]
    kinds = caches(*options, program: program)["findings"].map { |row| row["kind"] }.uniq.sort
    assert_equal %w[class_made constant_set method_added], kinds
    later = caches("--after", "1 request", program: program)["findings"].map { |row| row["kind"] }.uniq
    assert_equal ["method_added"], later
  end

  def test_the_gate_and_its_allow_list
    program = file("gate.rb")
    File.write(program, "require 'pitwall'\nPitwall.booted\ndef late = 1\n")
    list = file("allowed")
    gate = ["--after", "boot", "--fail-if", "invalidation"]
    caches(*gate, program: program, status: 1)
    caches("--after", "boot", "--allow-list", list, "--write-allow-list", program: program)
    assert_match(/^method_added\tObject#late\t/, File.read(list))
    caches(*gate, "--allow-list", list, program: program)
    File.write(list, "method_added\tGone#away\ta.rb\n", mode: "a")
    run = pitwall("caches", *gate, "--allow-list", list, "--", "ruby", "-I", File.join(Checkout::ROOT, "lib"), program)
    assert_match(/nothing matches "method_added\s+Gone#away\s+a.rb" any more/, run.err)
    assert_equal 0, run.status.exitstatus
  end

  # The script of ruby/ruby#2752, smaller: a module through layers, each of which includes it twice.
  def test_what_definitions_cost
    program = file("layers.rb")
    File.write(program, <<~RUBY)
      module Deep
        def early; end
      end
      mod = Deep
      3.times { mod = Module.new { include Deep; include mod } }
      CLASSES = Array.new(5) { Class.new { include mod } }
      7.times { |n| Deep.define_method(:"late\#{n}") {} }
      class Hooked
        def self.method_added(name) = puts("added \#{name}")
        def one; end
      end
      class Child < Hooked; end
      module Fixed
        def one; end
        freeze
      end
      at_exit { abort "left behind" if Deep.method_defined?(:pitwall_probe_0) }
    RUBY
    report = caches("--definitions", "--no-lines", program: program)
    rows = report["definitions"]["modules"].to_h { |row| [row["name"], row] }
    deep = rows.fetch("Deep")
    assert_equal [8, 7, 8, 8, 4 + 15, 0],
                 deep.values_at("definitions", "late", "entries", "reaches", "paths", "repeated")
    assert_operator deep["ns"], :>, 0
    assert_equal 7 * deep["ns"] + report["definitions"]["alone_ns"], deep["total_ns"]
    assert_equal "has hooks of its own", rows.fetch("Hooked")["not_measured"]
    assert_equal [0, 1], rows.fetch("Hooked").values_at("entries", "reaches")
    assert_equal "frozen", rows.fetch("Fixed")["not_measured"]
    lines = report["definitions"]["lines"].to_h { |line| [line["line"], line] }
    assert_equal 7 * deep["ns"], lines.fetch(7)["total_ns"]
    assert_equal 0, deep["counters"]["class_serial"] if RUBY_VERSION < "3.2"
    text = pitwall("report", file("x.pit")).out
    assert_match(/^Defining methods on modules.*Deep.*lines that define/m, text)
    assert_match(/\| `Deep` \|/, pitwall("report", file("x.pit"), "--format", "markdown").out)
  end

  # Hooks are called as often, in the same order, with the same arguments and results. TracePoints see the same events.
  def test_a_program_does_what_it_does_alone
    command = ["ruby", "-W0", File.join(FIXTURES, "hooks.rb")]
    alone = Open3.capture2e(*command).first
    assert_operator alone.lines.grep(/^:\w+/).size, :>=, 20, alone
    [%w[--definitions], %w[--no-lines]].each do |options|
      run = pitwall("caches", "--quiet", "--record", file("x.pit"), *options, "--", *command)
      assert_equal alone, run.out, options.join
      assert_equal 0, run.status.exitstatus, run.err
    end
  end

  def test_bad_input_gets_one_line
    assert_match(/--after never: write boot/, pitwall("caches", "--after", "never", "--", "ruby", "-e", "1").err)
    run = pitwall("caches", "--allow-list", file("none"), "--fail-if", "invalidation", "--", "ruby", "-e", "1")
    assert_equal 2, run.status.exitstatus
    assert_equal 1, run.err.lines.grep(/^pitwall: /).size, run.err
  end
end

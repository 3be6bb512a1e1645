# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "json"

# `pitwall boot --used` of generated files: which of them are used is known.
class BootUsesTest < Minitest::Test
  include CommandLine

  FILES = {
    "main.rb" => <<~RUBY,
      $LOAD_PATH.unshift(__dir__, File.join(__dir__, "vendor/gems/idle-1.0/lib"), File.join(__dir__, "vendor/gems/busy-1.0/lib"))
      %w[at_load later never constants in_child in_thread evaluated defined_by_block compiled circle_a idle busy outer]
        .each { |name| require name }
      load File.join(__dir__, "script.rb")
      at_exit { Later.go }
      Process.wait(fork { InChild.go })
      Thread.new { InThread.go }.join
      Evaluated.new.size
      DefinedByBlock.new.go
      Busy.new.go
    RUBY
    "at_load.rb" => "module AtLoad; def self.go = [1].each { |n| n }; go; end\n",
    "later.rb" => "module Later; def self.go = 1; end\n", "never.rb" => "module Never; def self.go = 1; end\n",
    "constants.rb" => "CONSTANTS = [1, 2].map { |n| n * 2 }\n",
    "in_child.rb" => "module InChild; def self.go = 1; end\n",
    "in_thread.rb" => "module InThread; def self.go = 1; end\n",
    "evaluated.rb" => "class Evaluated; def other = 1; class_eval('def size = 1', __FILE__, 1); end\n",
    "defined_by_block.rb" => "class DefinedByBlock; def other = 1; define_method(:go) { 2 }; end\n",
    "compiled.rb" => "require 'etc'\nmodule Compiled; def self.go = 1; end\n",
    "script.rb" => "def script = 1\nscript\n",
    "circle_a.rb" => "module A; def self.go = 1; end\nrequire 'circle_b'\n", "circle_b.rb" => "A.go\ndef b = 1\n",
    "vendor/gems/idle-1.0/lib/idle.rb" => "require 'idle/part'\nmodule Idle; def self.go = 1; end\n",
    "vendor/gems/idle-1.0/lib/idle/part.rb" => "sleep 0.05\nmodule Idle; def self.part = 1; end\n",
    "vendor/gems/busy-1.0/lib/busy.rb" => "require 'busy/part'\nclass Busy; def go = 1; end\n",
    "vendor/gems/busy-1.0/lib/busy/part.rb" => "class Busy; def part = 1; end\n",
    "outer.rb" => "require 'later'\nsleep 0.05\nrequire 'within'\ndef outer = 1\n", "within.rb" => "def within = 1\n"
  }.freeze

  def setup
    super
    write_files(FILES)
  end

  def record(program, *options, status: 0)
    run = pitwall("boot", "--record", file("x.pit"), "--quiet", *options, "--", "ruby", program)
    assert_equal status, run.status.exitstatus, run.err
    run
  end

  def report = JSON.parse(pitwall("report", file("x.pit"), "--view", "boot", "--format", "json").out)

  # {"later" => true, "never" => false, "constants" => nil, …}
  def uses(report = self.report)
    report["features"].to_h { |row| [File.basename(row["path"], ".rb"), row["used"]] }
  end

  EXPECTED = { "at_load" => false, "later" => true, "never" => false, "constants" => nil, "in_child" => true,
               "in_thread" => true, "evaluated" => true, "defined_by_block" => true, "compiled" => nil, "script" => nil,
               "circle_a" => false, "circle_b" => false, "idle" => false, "busy" => true, "outer" => false }.freeze

  def test_which_files_are_used
    record("main.rb", "--used")
    found = report
    assert_equal EXPECTED, uses(found).slice(*EXPECTED.keys)
    used = found["used"]
    assert_equal [["idle", 2]], (used["gems"].map { |row| row.values_at("name", "files") })
    refute used["killed"]
    assert_includes used["files"].map { |row| File.basename(row["path"]) }, "within.rb"
    assert_equal used["counts"]["unused"], used["files"].size
    times = used["files"].map { |row| row["self_ns"] }
    assert_equal times.sort.reverse, times
    advice(found)
    views
  end

  # Only what the program itself asks for: not what an unused file loads.
  def advice(found)
    kinds = found["advice"].select { |one| one["kind"].start_with?("unused") }
    subjects = kinds.map { |one| [one["kind"], File.basename(one["subject"])] }
    assert_includes subjects, %w[unused_gem idle]
    assert_includes subjects, %w[unused_file outer.rb]
    refute_includes subjects, %w[unused_file within.rb]
    idle = kinds.find { |one| one["subject"] == "idle" }
    assert_operator idle["saving_ns"], :>=, 50_000_000
    assert_equal [file("main.rb"), 3], [File.expand_path(idle["path"], @dir), idle["line"]]
    assert_match(/compare --dirty/, idle["proof"])
    refute_includes found["advice"].map { |one| [one["kind"], one["subject"]] }, %w[gem idle]
  end

  # Of the same recording.
  def views
    text = pitwall("report", file("x.pit")).out
    assert_match(/times and objects include what Pitwall needs to watch/, text)
    assert_match(/idle was never used \(2 files\): require it where it is needed/, text)
    assert_match(/^Never used afterwards\n.*no method or.*files +gem\n.* idle /m, text)
    assert_match(/never used.*or autoload it/m, text)
    markdown = pitwall("report", file("x.pit"), "--format", "markdown").out
    assert_match(/^\*\*Never used afterwards\.\*\*.*^\| .*`idle`/m, markdown)
    redacted = pitwall("report", file("x.pit"), "--redact", "--format", "json").out
    assert_equal uses.values.tally, uses(JSON.parse(redacted)).values.tally
    refute_includes redacted, @dir
  end

  def test_without_the_option
    record("main.rb")
    assert_nil report["used"]
    assert_equal [nil], uses.values.uniq
    assert(segments(file("x.pit")).all? { |segment| segment.file_uses.empty? && !segment.uses? })
    refute_match(/[Nn]ever used|watch which/, pitwall("report", file("x.pit")).out)
  end

  # Each ends in another way; the file is used right before.
  ENDS = { "exit!(7)" => 7, "exec('sh', '-c', 'exit 7')" => 7, "exit 7" => 7, "raise 'no'" => 1, "abort" => 1,
           "exec('/none') rescue exit(7)" => 7 }.freeze

  def test_each_ending_has_all_uses
    ENDS.each do |ending, status|
      File.write(file("ends.rb"), "require './later'\nrequire './never'\nLater.go\n#{ending}\n")
      record("ends.rb", "--used", status: status)
      assert_equal [true, false], uses.values_at("later", "never"), ending
      refute report["used"]["killed"], ending
    end
  end

  def test_a_killed_process
    File.write(file("ends.rb"), "require './later'\nLater.go\nProcess.kill(:KILL, $$)\n")
    run = pitwall("boot", "--used", "--record", file("x.pit"), "--quiet", "--", "ruby", "ends.rb")
    assert_equal Signal.list["KILL"], run.status.termsig, run.err
    segments(file("x.pit")).each { |segment| refute segment.uses? && segment.boot_sizes("end").any? }
  end

  # A child that uses a file after an exec that failed, and one whose parent has used nothing.
  def test_processes_that_go_on
    File.write(file("ends.rb"), <<~RUBY)
      require "./later"
      require "./never"
      require "./in_child"
      exec("/none") rescue Later.go
      Process.wait(fork { Process.wait(fork { InChild.go; exit!(0) }) })
      exec("ruby", "-e", "require './at_load'; AtLoad.go")
    RUBY
    record("ends.rb", "--used")
    assert_equal [true, false, true, true], uses.values_at("later", "never", "in_child", "at_load")
  end

  # The program's own Coverage and TracePoints see the same as without Pitwall; so does it of itself.
  BEHAVIOUR = <<~'RUBY'
    require "coverage"
    events = []
    trace = TracePoint.new(:call, :b_call, :raise) { |event| events << [event.event, event.method_id] if event.path.end_with?("shown.rb") }
    File.write("shown.rb", "module Shown\n  def self.go(n) = [n].each { |m| m }\n  def self.other = 2\nend\n")
    Coverage.start(lines: true, methods: true)
    trace.enable
    require "./shown"
    3.times { |n| Shown.go(n) }
    one = TracePoint.new(:call) { events << :one }
    one.enable(target: Shown.method(:other)) { 2.times { Shown.other } }
    trace.disable
    covered = Coverage.result.find { |path, _| path.end_with?("shown.rb") }.last
    # Ruby lists methods in the order in which they lie on its heap.
    p events, covered.merge(methods: covered[:methods].sort_by { |(_, name), _| name })
    code = RubyVM::InstructionSequence.compile_file("shown.rb")
    p RubyVM::InstructionSequence.load_from_binary(code.to_binary).eval, $!
    begin; Shown.go; rescue ArgumentError => error; puts error.full_message(highlight: false); end
    p Shown.method(:go).source_location, ObjectSpace.each_object(Module).count { |found| found.name.to_s.start_with?("Shown") }
    def deep(n) = deep(n + 1)
    begin; deep(0); rescue SystemStackError => error; p error.class; end
    exit 3
  RUBY

  def test_behaviour_is_the_same
    File.write(file("behaviour.rb"), BEHAVIOUR)
    plain = capture({}, "ruby", "behaviour.rb")
    recorded = record("behaviour.rb", "--used", status: 3)
    assert_equal [plain.status.exitstatus, plain.out, plain.err], [3, recorded.out, recorded.err]
    assert_equal true, uses["shown"]
  end

  # Many files, of which threads use half at the same time, under a collector that moves objects.
  def test_many_files_and_threads
    count = 200
    write_files((0...count).to_h { |n| ["many/f#{n}.rb", "module F#{n}; def self.go = [1].map { |m| m + #{n} }; end\n"] })
    File.write(file("many.rb"), <<~RUBY)
      #{count}.times { |n| require "./many/f\#{n}" }
      GC.compact if GC.respond_to?(:compact)
      threads = 4.times.map do
        Thread.new { (0...#{count}).step(2) { |n| 10.times { Object.const_get("F\#{n}").go }; Thread.pass } }
      end
      threads.each(&:join)
      GC.start
      puts (0...#{count}).step(2).sum { |n| Object.const_get("F\#{n}").go.first }
    RUBY
    run = record("many.rb", "--used")
    assert_equal "10000\n", run.out
    found = uses
    assert_equal [true], (0...count).step(2).map { |n| found["f#{n}"] }.uniq
    assert_equal [false], (1...count).step(2).map { |n| found["f#{n}"] }.uniq
  end

  def test_ractors
    File.write(file("ractors.rb"), <<~RUBY)
      require "./later"
      require "./never"
      found = Ractor.new { 3.times.sum { Later.go } }
      puts found.respond_to?(:value) ? found.value : found.take
    RUBY
    run = pitwall("boot", "--used", "--record", file("x.pit"), "--quiet", "--", "ruby", "-W0", "ractors.rb")
    assert_equal [0, "3\n"], [run.status.exitstatus, run.out], run.err
    assert_equal false, uses["never"]
  end
end

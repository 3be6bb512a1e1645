# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/own_walk"
require_relative "../support/recording_builder"
require "stringio"
require "minitest/mock"
require "pitwall/cli"
require "pitwall/doctor"
require "pitwall/record"

class DoctorTest < Minitest::Test
  include CommandLine

  Doctor = Pitwall::Doctor

  # A trial that went as a test wants.
  FakeTrial = Struct.new(:ruby, :description, :engine, :yjit, :zjit, :collector, :outside, :walk, :native, :problem,
                         :segment,
                         keyword_init: true)

  def doctor(**trial)
    trial = { ruby: "/x/ruby", description: "ruby 3.4.1", engine: "ruby", yjit: "off", zjit: "not built in",
              collector: "default",
              outside: "works", walk: "works", native: "works" }.merge(trial)
    Doctor.new(trials: [FakeTrial.new(**trial)], streams: { "standard output" => StringIO.new })
  end

  def check(doctor, name) = doctor.checks.find { |check| check.name == name }

  # What restricts nothing is only counted.
  def test_in_short
    result = pitwall("doctor")
    assert_equal ["", 0], [result.err, result.status.exitstatus]
    assert_match(/\Apitwall profile: works here.*\npitwall syscalls: .*\n(ok|limited) +ruby /, result.out)
    assert_match(/^\d+ more checks restrict nothing: pitwall doctor --all\n\z/, result.out)
    refute_match(/^ok {6}(?!ruby|mode|cores)/, result.out)
    sick = doctor(problem: "no extension for ruby 3.4.1")
    Doctor.stub(:new, sick) do
      out = StringIO.new
      assert_equal 4, Pitwall::CLI.run(["doctor"], out: out, err: out)
      assert_match(/^no +sampler +no extension for ruby 3.4.1\n(.*\n)* +→ /, out.string)
    end
  end

  def test_this_machine_in_text
    result = pitwall("doctor", "--all")
    assert_equal ["", 0], [result.err, result.status.exitstatus]
    assert_match(/\Apitwall profile: works here/, result.out)
    %w[ruby sampler clock cores recordings strace c++filt].each do |name|
      assert_match(/^(ok|note|limited|no) +#{Regexp.escape(name)} /, result.out)
    end
    assert_operator result.out.lines.map { |line| line.chomp.size }.reject { |size| size > 100 }.size, :>, 10
  end

  def test_this_machine_in_json
    result = pitwall("doctor", "--format", "json")
    report = JSON.parse(result.out)
    assert_equal "pitwall/doctor-1", report["schema"]
    assert_includes %w[works limited], report.dig("commands", "profile", "verdict")
    report["checks"].each do |check|
      assert_equal %w[affects meaning mend name state value], check.keys.sort
      assert_includes %w[ok note limited no], check["state"]
      assert_equal %w[limited no].include?(check["state"]), check["affects"].any?, check["name"]
      assert check["mend"], "#{check["name"]} restricts and names no mend" if check["affects"].any?
    end
    limits = report["checks"].select { |check| check["affects"].include?("profile") }.map { |check| check["name"] }
    assert_equal limits, report.dig("commands", "profile", "limits")
  end

  def test_it_leaves_nothing_behind
    pitwall("doctor")
    assert_empty Dir.children(@dir) - [".tmp"]
    assert_empty Dir.children(file(".tmp"))
  end

  def test_without_an_extension_profile_does_not_work
    sick = doctor(problem: "no extension for ruby 3.4.1")
    assert_equal "no", sick.verdict("profile")
    assert_equal "no extension for ruby 3.4.1", check(sick, "sampler").value
    assert_match(/gem install pitwall-core/, check(sick, "sampler").mend)
  end

  def test_the_status_is_4_when_profile_does_not_work
    lib = file("lib")
    FileUtils.cp_r("#{Checkout::ROOT}/lib", lib)
    FileUtils.rm_rf("#{lib}/pitwall/native")
    result = pitwall("doctor", env: { "TEST_LIB" => lib })
    assert_equal 4, result.status.exitstatus
    assert_match(/\Apitwall profile: does not work here/, result.out)
    assert_match(/no +sampler +.*no extension for ruby #{RUBY_VERSION}/, result.out.gsub(/\s+/, " "))
  end

  def test_another_interpreter
    sick = doctor(engine: "truffleruby", description: "truffleruby 24", problem: "is not CRuby")
    assert_equal :no, check(sick, "ruby").state
    assert_match(/name another/, check(sick, "ruby").mend)
  end

  def test_a_ruby_that_does_not_start
    trial = Doctor::Trial.new("/no/such/ruby")
    assert_match(/not executable|not found/, trial.problem)
    assert_nil trial.segment
  end

  def test_a_trial_of_this_ruby
    trial = Doctor::Trial.new(RUBY)
    # The tests may run with --yjit or --zjit in RUBYOPT; a trial doesn't.
    assert_equal [RUBY_DESCRIPTION.sub(/ \+[YZ]JIT/, ""), "ruby", nil], [trial.description, trial.engine, trial.problem]
    assert_operator trial.segment.stat("captures"), :>, 0
  end

  # One line a compiler, also where this Ruby has none.
  def test_compilers_that_are_on
    states = { "yjit" => "off", "zjit" => "on" }
    File.binwrite(file("trial.pit"), RecordingBuilder.build { |segment| segment.thread(1, "main") })
    segment = Pitwall::Record.read(file("trial.pit")).segments.first
    found = states.keys.map { |name| check(doctor(**states.transform_keys(&:to_sym), segment: segment), name) }
    summaries = found.map { |one| [one.state, one.value, one.meaning&.slice("C functions")] }
    assert_equal [[:ok, "off", nil], [:note, "on", "C functions"]], summaries
    trial = Doctor::Trial.new(RUBY)
    expected = %w[YJIT ZJIT].map { |name| RubyVM.const_defined?(name) ? "off" : "not built in" }
    assert_equal expected, [trial.yjit, trial.zjit]
  end

  def test_native_frames
    segment = Doctor::Trial.new(RUBY).segment
    assert_equal [:ok, []], check(doctor(segment: segment), "native frames").then { |one| [one.state, one.affects] }
    refused = check(doctor(segment: segment, native: "native frames are read on Linux only"), "native frames")
    assert_equal [:note, "native frames are read on Linux only"], [refused.state, refused.value]
    assert_match(/--native records Ruby frames only/, refused.meaning)
    assert_equal Pitwall::Native.native_refusal || "works", Doctor::Trial.new(RUBY).native
  end

  def test_another_garbage_collector
    File.binwrite(file("trial.pit"), RecordingBuilder.build { |segment| segment.thread(1, "main") })
    segment = Pitwall::Record.read(file("trial.pit")).segments.first
    own = check(doctor(segment: segment), "collector")
    assert_equal [:ok, "Ruby's own"], [own.state, own.value]
    other = check(doctor(segment: segment, collector: "mmtk"), "collector")
    assert_equal [:limited, "mmtk", "run without RUBY_GC_LIBRARY"], [other.state, other.value, other.mend]
    assert_equal "default", Doctor::Trial.new(RUBY).collector
  end

  # Which mode is used unasked, as the trial's recording has it, and why.
  def test_the_mode_that_is_used
    {
      "outside" => ["a core is spare", :ok], "signal" => ["its CPU quota is 1.5 cores", :note]
    }.each do |mode, (reason, state)|
      built = RecordingBuilder.build(mode: mode, mode_reason: reason, walk: "own") do |segment|
        segment.thread(1, "main")
      end
      File.binwrite(file("trial.pit"), built)
      found = check(doctor(segment: Pitwall::Record.read(file("trial.pit")).segments.first), "mode")
      assert_equal [state, "#{mode}: #{reason}"], [found.state, found.value]
      assert_equal mode == "signal", !found.mend.nil?
    end
    header = Doctor::Trial.new(RUBY).segment.header
    assert_includes %w[outside signal], header.mode
    refute_equal "asked for", header.mode_reason
  end

  # Where signals are used unasked a reader from outside may work all the same: the trial asks.
  def test_the_mode_that_may_be_asked_for
    reason = "this Ruby does not tell when threads wait"
    built = RecordingBuilder.build(mode: "signal", mode_reason: reason) { |segment| segment.thread(1, "main") }
    File.binwrite(file("trial.pit"), built)
    segment = Pitwall::Record.read(file("trial.pit")).segments.first
    assert_match(/\A--mode outside, which doesn't, works here/, check(doctor(segment: segment), "mode").mend)
    ["process_vm_readv: not allowed", "unknown"].each do |outside|
      mend = check(doctor(segment: segment, outside: outside), "mode").mend
      assert_match(/\Aoutside, which doesn't, needs a Ruby whose stacks/, mend)
    end
    result = pitwall("profile", "--quiet", "--mode", "outside", "--record", "asked.pit", "--", RUBY, "-e", "sleep 0.01")
    assert_equal 0, result.status.exitstatus, result.err
    mode = Pitwall::Record.read(file("asked.pit")).segments.first.header.mode
    assert_equal mode == "outside", Doctor::Trial.new(RUBY).outside == "works"
  end

  # On a Ruby whose layout is not known one check says what is missing, and which Rubies are known.
  def test_a_ruby_whose_layout_is_not_known
    built = RecordingBuilder.build(mode: "signal", mode_reason: "x", walk: "rb_profile_frames") do |segment|
      segment.thread(1, "main")
    end
    File.binwrite(file("trial.pit"), built)
    refusal = "the layout of Ruby 9.9 is not known to this Pitwall (it knows 3.1 to 4.0 on 64-bit Linux)"
    segment = Pitwall::Record.read(file("trial.pit")).segments.first
    limits = doctor(segment: segment, walk: refusal).checks.select { |check| check.affects.include?("trace") }
    assert_equal [["stack walk", "rb_profile_frames: #{refusal}"]], limits.map { |check| [check.name, check.value] }
    assert_match(/no outside mode, no trace, no allocations --stacks/, limits.first.meaning)
  end

  def test_this_ruby_is_walked_or_says_why_not
    doctor = Doctor.new(trials: [Doctor::Trial.new(RUBY)], streams: {})
    found = doctor.checks.find { |check| check.name == "stack walk" }
    own = [:ok, "own, proven by a self-test; blocks are told from their methods"]
    assert_equal OwnWalk.used? ? own : [:limited, "rb_profile_frames: #{OwnWalk.refusal}"],
                 [found.state, found.value]
  end

  def test_an_argument_is_refused
    assert_equal 2, pitwall("doctor", "x").status.exitstatus
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/syscall_dispatch"
require "pitwall/record"

# Planted faults: one of the extension's own calls fails, or all from one on (test/faults/faults.c). The program ends as
# it does alone, and what there is of the recording can be read. `rake test:faults` builds the extension that fails.
#
# PITWALL_FAULTS_EACH=1 plants faults at every place. Otherwise PITWALL_FAULTS=10 of them are planted in each way of
# recording, by a seed that is printed (PITWALL_FAULTS_SEED takes it again).
class FaultsTest < Minitest::Test
  include CommandLine
  include SyscallDispatch

  PROGRAM = <<~'RUBY'
    def work = 2_000.times.map { |i| "item #{i}".upcase }
    def deep(n) = n.zero? ? work.size : deep(n - 1)
    threads = Array.new(3) do |i|
      Thread.new { Thread.current.name = "thread #{i}"; 5.times { deep(i * 3); sleep 0.001 } }
    end
    50.times { |i| Object.class_eval("def fresh_#{i} = 20.times { |n| n.to_s }"); send("fresh_#{i}") }
    threads.each(&:join)
    Process.wait(fork { work; $stdout.syswrite("child\n"); exit!(4) })
    puts $?.exitstatus
    GC.start
    8.times { Thread.new { sleep 0.002 }.join }
    File.stat("/")
    waiter = Thread.new { sleep }
    sleep 0.03
    waiter.kill
    puts work.size
    exit 7
  RUBY
  EXPECTED = ["child\n4\n2000\n", "", 7].freeze

  WAYS = {
    "signal" => %w[profile --mode signal --interval 1ms], "outside" => %w[profile --mode outside --interval 1ms],
    "safepoint" => %w[profile --mode safepoint --interval 1ms],
    "trace" => %w[trace], "allocations" => %w[allocations --stacks],
    "caches" => %w[caches --lines],
    "bursts" => %w[profile --allocations --interval 1ms], "syscalls" => %w[syscalls]
  }.freeze
  ERRORS = %w[ENOMEM EMFILE ENFILE ENOSPC EFBIG EIO EINTR EAGAIN EPERM].freeze
  # After these the call is made again: one that always failed would be no fault but another world.
  ONCE = %w[EINTR].freeze
  # Words by which Pitwall says on standard error that a recording is missing or not whole, one line each.
  SAID = /\Apitwall: /
  EACH = !ENV["PITWALL_FAULTS_EACH"].to_s.empty?
  A_WAY = Integer(ENV.fetch("PITWALL_FAULTS", "10"))
  SEED = Integer(ENV.fetch("PITWALL_FAULTS_SEED", Random.rand(10_000).to_s))

  def run_with(way, fault, count: nil)
    env = { "PITWALL_FAULT" => fault, "PITWALL_FAULT_COUNT" => count, "PITWALL_DEBUG" => nil }
    FileUtils.rm_f(file("x.pit"))
    program = [RUBY, "--disable-gems", "-W0", "program.rb"]
    pitwall(*WAYS.fetch(way), "--quiet", "--record", "x.pit", "--", *program, env: env)
  end

  # How many calls there are that can fail with each error: {"EMFILE" => 3, …}.
  def places(way)
    result = run_with(way, nil, count: file("count"))
    assert_equal EXPECTED, [result.out, result.err, result.status.exitstatus], "#{way} without a fault"
    assert_path_exists file("count"), "the extension was built without faults: script/rake test:faults"
    counts = File.readlines(file("count")).map { |line| line.scan(/(\w+)=(\d+)/).to_h.transform_values(&:to_i) }
    counts.reduce { |a, b| a.merge(b) { |_, m, n| [m, n].max } }
  end

  def faults(places, random)
    all = places.flat_map do |error, count|
      (1..count).flat_map { |at| ONCE.include?(error) ? ["#{error}:#{at}"] : ["#{error}:#{at}", "#{error}:#{at}+"] }
    end
    return all if EACH

    # Of each error first, of which some have hundreds of places.
    by_error = all.group_by { |fault| fault[/\A\w+/] }.values.map { |own| own.shuffle(random: random) }
    Array.new(by_error.map(&:size).max) { |n| by_error.filter_map { |own| own[n] } }.flatten.first(A_WAY)
  end

  def verdict(way, fault)
    result = run_with(way, fault)
    said = result.err.lines(chomp: true)
    problems = []
    problems << "output #{result.out.inspect}" unless result.out == EXPECTED[0]
    problems << "status #{result.status.inspect}" unless result.status.exitstatus == EXPECTED[2]
    problems << "said #{result.err.inspect}" unless said.all?(SAID) && said.size <= 4
    problems << recording_problem(said)
    problems.compact
  end

  # There is a recording that can be read, or a line says why there is none.
  def recording_problem(said)
    return ("no recording, and no word" if said.empty?) unless File.exist?(file("x.pit"))

    Pitwall::Record.read(file("x.pit"))
    nil
  rescue Pitwall::Error => error
    "unreadable: #{error.message}"
  end

  WAYS.each_key do |way|
    define_method(:"test_#{way}") do
      skip_without_dispatch if way == "syscalls"
      File.write(file("program.rb"), PROGRAM)
      planted = faults(places(way), Random.new(SEED))
      failures = planted.filter_map do |fault|
        problems = verdict(way, fault)
        "#{way} #{fault}: #{problems.join("; ")}" if problems.any?
      end
      puts "#{way}: #{planted.size} faults planted, seed #{SEED}"
      assert failures.empty?, failures.join("\n")
    end
  end

  # What was not written any more is told, with the reason.
  def test_what_is_missing_is_said
    File.write(file("program.rb"), PROGRAM)
    # The program's start makes most of the calls; a recording that never began is no recording.
    count = places("signal").fetch("ENOMEM")
    late = [90, 95, 98, 99].map { |percent| count * percent / 100 }.find do |at|
      verdict("signal", "ENOMEM:#{at}+").empty? && File.exist?(file("x.pit"))
    end
    refute_nil late, "no recording at #{count}"
    { "ENOMEM:#{late}+" => /memory/i, "ENOSPC:3+" => /space/i }.each do |fault, reason|
      assert_empty verdict("signal", fault), fault
      warnings = Pitwall::Record.read(file("x.pit")).warnings.map(&:message)
      assert warnings.grep(reason).any?, "#{fault}: #{warnings}"
    end
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/own_walk"
require_relative "../support/recorded_program"
require "pitwall/collect/cores"
require "pitwall/doctor"

# Whether a core is spare for a reader, and what follows from it for the mode that is used unasked.
class CoresTest < Minitest::Test
  include RecordedProgram

  # Where stacks can be read from outside (as OutsideCollectorTest has it), and where they are unasked: thread events are needed, too.
  KNOWN = OwnWalk.used?
  UNASKED = KNOWN && RUBY_VERSION >= "3.2"

  # A machine's /proc/self and control groups. limits: {"folder below the mount" => {"cpu.max" => "…"}}
  def cores(allowed, cgroup: "", mounts: [], limits: {})
    File.write(file("cgroup"), cgroup)
    File.write(file("mountinfo"), "20 1 0:1 / / rw - ext4 /dev/vda rw\n#{mounts.map { |line| line.sub("%s") { @dir } }.join("\n")}\n")
    limits.each do |folder, files|
      FileUtils.mkdir_p(file(folder))
      files.each { |name, text| File.write(File.join(file(folder), name), text) }
    end
    Pitwall::Collect::Cores.new(allowed, process: @dir)
  end

  V2 = "31 24 0:27 / %s/v2 rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
  V1 = "32 31 0:29 / %s/v1 rw,relatime - cgroup cgroup rw,cpuacct,cpu"

  def v1(quota, period = 100_000) = { "cpu.cfs_quota_us" => "#{quota}\n", "cpu.cfs_period_us" => "#{period}\n" }

  def test_cores_that_it_may_run_on
    assert_equal "the process may use 1 core", cores(1).refusal
    [2, 64, nil].each { |count| assert_nil cores(count).refusal }
  end

  def test_a_quota_of_version_2
    assert_nil cores(4, cgroup: "0::/app\n", mounts: [V2], limits: { "v2/app" => { "cpu.max" => "max 100000\n" } }).quota
    found = cores(4, cgroup: "0::/app\n", mounts: [V2], limits: { "v2/app" => { "cpu.max" => "150000 100000\n" } })
    assert_equal [1.5, "its CPU quota is 1.5 cores"], [found.quota, found.refusal]
    found = cores(4, cgroup: "0::/app\n", mounts: [V2], limits: { "v2/app" => { "cpu.max" => "40000 20000\n" } })
    assert_equal [2.0, nil], [found.quota, found.refusal]
  end

  # The tightest of the groups around it counts.
  def test_quotas_of_groups_around
    limits = { "v2" => { "cpu.max" => "max 100000" }, "v2/a" => { "cpu.max" => "100000 100000" }, "v2/a/b" => { "cpu.max" => "300000 100000" }, "v2/c" => { "cpu.max" => "1000 100000" } }
    assert_equal 1.0, cores(4, cgroup: "0::/a/b/leaf\n", mounts: [V2], limits: limits).quota
    assert_equal 2.5, cores(4, cgroup: "5:cpu,cpuacct:/x/y\n3:cpuset:/\n", mounts: [V1], limits: { "v1/x" => v1(250_000), "v1/x/y" => v1(-1) }).quota
  end

  def test_quotas_of_both_versions
    found = cores(4, cgroup: "5:cpuacct,cpu:/x\n0::/y\n", mounts: [V1, V2], limits: { "v1/x" => v1(300_000), "v2/y" => { "cpu.max" => "180000 100000" } })
    assert_equal 1.8, found.quota
  end

  # A container sees a part of the tree, whose root is the mount's: its own group's path may be told from the host's root.
  def test_mounts_of_a_part_of_the_tree
    part = V1.sub(" / ", " /docker/abc ")
    assert_equal 0.5, cores(4, cgroup: "5:cpu:/docker/abc\n", mounts: [part], limits: { "v1" => v1(50_000) }).quota
    assert_equal 0.5, cores(4, cgroup: "5:cpu:/docker/abc/in\n", mounts: [part], limits: { "v1" => v1(-1), "v1/in" => v1(50_000) }).quota
    assert_equal 0.7, cores(4, cgroup: "5:cpu:/docker/abcd\n", mounts: [part], limits: { "v1" => v1(70_000) }).quota
    spaced = V2.sub("%s/v2") { "%s/a\\040b" }
    assert_equal 1.2, cores(4, cgroup: "0::/\n", mounts: [spaced], limits: { "a b" => { "cpu.max" => "120000 100000" } }).quota
  end

  def test_nothing_to_go_by
    assert_nil cores(2, cgroup: "junk\n::\n0::/../..\n", mounts: ["x - cgroup2", "1 2 3 - cgroup", V2], limits: { "v2" => { "cpu.max" => "0 0" } }).quota
    assert_nil Pitwall::Collect::Cores.new(2, process: file("absent")).quota
  end

  # --- what follows ---

  def header_after(source, **options)
    run_program(source, **options)
    segment.header
  end

  def test_unasked_where_no_core_is_spare
    header = header_after("Pitwall::Collect::Cores.define_method(:allowed) { 1 }\nrecord { burn(0.01) }")
    assert_equal "signal", header.mode
    assert_equal "the process may use 1 core", header.mode_reason if UNASKED
  end

  def test_unasked_where_a_core_is_spare
    header = header_after("Pitwall::Collect::Cores.define_method(:refusal) { nil }\nrecord { burn(0.01) }")
    assert_equal UNASKED ? "outside" : "signal", header.mode
    assert_match UNASKED ? /\Aa core is spare\z/ : /this Ruby/, header.mode_reason
  end

  # The kernel's own word: this process may run on one core, and so may its children.
  def test_on_one_core
    skip "taskset is missing: apt install util-linux" unless system("taskset", "--version", out: File::NULL, err: File::NULL)
    core = File.read("/proc/self/status")[/^Cpus_allowed_list:\s*(\d+)/, 1]
    header = header_after("system('taskset', '-cp', '#{core}', $$.to_s, out: File::NULL)\nrecord { burn(0.01) }")
    assert_equal "signal", header.mode
    assert_equal "the process may use 1 core", header.mode_reason if UNASKED
  end

  def test_what_is_asked_for_is_used
    %w[signal safepoint].each do |mode|
      header = header_after("record(mode: #{mode.dump}) { burn(0.01) }")
      assert_equal [mode, "asked for"], [header.mode, header.mode_reason]
    end
    one_core = "Pitwall::Collect::Cores.define_method(:allowed) { 1 }\n"
    assert_equal KNOWN ? "outside" : "signal", header_after("#{one_core}record(mode: :outside) { burn(0.01) }").mode
    assert_equal "signal", header_after("record(signal: 'WINCH') { burn(0.01) }").mode, "who names a signal wants signals"
  end

  # Each child asks again.
  def test_a_forked_child
    run_program(<<~'RUBY')
      $parent = Process.pid
      Pitwall::Collect::Cores.define_method(:refusal) { "there is none in the child" unless Process.pid == $parent }
      record { Process.wait(fork { burn(0.02) }) }
    RUBY
    child = Dir[file("*-[0-9]*.pit")]
    assert_equal 1, child.size
    header = Pitwall::Record.read(child.first).segments.first.header
    assert_equal "signal", header.mode
    assert_equal "there is none in the child", header.mode_reason if UNASKED
    assert_equal UNASKED ? "outside" : "signal", segment.header.mode
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/syscall_dispatch"
require_relative "../support/recorded_program"
require_relative "../oracle/strace_log"
require "pitwall"
require "pitwall/launch/target_environment"

# The start of a real program, the Rails application of examples/shop, under strace and Pitwall at once: the same calls, one by one, in each thread of
# each Ruby process from the moment it is armed. Where script/demo has installed its gems.
class StracePeerTest < Minitest::Test
  include SyscallDispatch
  include RecordedProgram

  SHOP = File.join(Checkout::ROOT, "examples/shop")

  def test_the_start_of_a_rails_application
    skip_without_dispatch
    skip "peer absent: strace" unless system("command -v strace > /dev/null")
    skip "peer absent: the gems of examples/shop (script/demo installs them)" unless system(shop, RUBY, File.join(SHOP, "bin/bundle"), "check", out: File::NULL, err: File::NULL)

    trace(RUBY, File.join(SHOP, "bin/rails"), "runner", "1")
    theirs = StraceLog.new(file("strace.log")).calls.group_by(&:tid)
    parts = Dir[file("parts/*.pit")].flat_map { |name| Pitwall::Record.read(name).segments }
    ours = parts.flat_map { |part| [].tap { |found| part.each_syscall { |call| found << call } } }.group_by(&:tid)
    assert_operator ours.each_value.sum(&:size), :>, 20_000
    assert_equal theirs.transform_values(&:size), ours.transform_values(&:size)
    theirs.each { |tid, calls| assert_equal(calls.map { |call| [call.name, call.result, given(call)] }, ours.fetch(tid).zip(calls).map { |call, wanted| seen(call, wanted) }, "thread #{tid}") }
  end

  def shop
    CLEAN.merge("BUNDLE_PATH" => File.join(Checkout::ROOT, "vendor/shop"), "BUNDLE_APP_CONFIG" => File.join(Checkout::ROOT, "tmp/shop-bundle"),
                "BUNDLE_SILENCE_ROOT_WARNING" => "1", "SHOP_TMP" => File.join(Checkout::ROOT, "tmp/shop"))
  end

  def trace(*command)
    Dir.mkdir(file("parts"))
    recorded = Pitwall::Launch::TargetEnvironment.new(parts: file("parts"), options: { mode: "none", "syscalls.stacks": 1 }).to_h({})
    names = Pitwall::Native.syscall_names(false).map { |name| "?#{name}" }.join(",")
    pid = Process.spawn(shop.merge(recorded), "strace", "-f", "-qq", "-s", "4096", "-o", file("strace.log"), "-e", "trace=prctl,#{names}", "-e", "signal=none", *command,
                        out: File::NULL, err: file("err"), pgroup: true)
    status = wait_for(pid, 240)
    assert status&.success?, "#{status}\n#{File.read(file("err"))[0, 2000]}"
  end

  # An absolute path, or nil for one that starts elsewhere.
  def given(call) = call.name.start_with?("symlink") ? nil : call.paths.first&.then { |path| path if path.start_with?("/") }

  def seen(call, wanted) = [call.name, call.errno.zero? ? call.result : "E#{call.errno}", given(wanted) && call.path]
end

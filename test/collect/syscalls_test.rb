# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/syscall_dispatch"
require_relative "../support/recorded_program"
require_relative "../oracle/strace_log"
require "pitwall"

# File-system calls seen from inside: against what the program is known to do, against strace, and where programs do what programs shouldn't.
class SyscallsTest < Minitest::Test
  include SyscallDispatch
  include RecordedProgram

  def setup
    super
    skip_without_dispatch
  end

  def calls(part = segment) = [].tap { |found| part.each_syscall { |call| found << call } }

  def calls_on(path, part = segment) = calls(part).select { |call| call.path == path || call.path2 == path }

  # "Object#look:3" of a call's stack, innermost first.
  def stack(part, call)
    node = call.node
    frames = []
    while node.positive?
      frames << "#{part.frame(node).name}:#{part.lines[node]}"
      node = part.parents[node]
    end
    frames
  end

  def assert_complete(part)
    facts = part.syscall_facts
    assert_equal [0, 0, nil, false], facts.to_a
    assert_equal part.syscall_totals.transform_values(&:first), calls(part).map(&:name).tally
    assert_equal part.syscall_totals.transform_values { |_, errors, _| errors }, part.syscall_totals.to_h { |name, _| [name, calls(part).count { |call| call.name == name && call.errno.positive? }] }
  end

  def test_calls_with_paths_results_and_lines
    run_program(<<~'RUBY')
      def look = File.exist?("nope")
      def deeper = [1].each { look }
      record(collectors: { "syscalls" => { "stacks" => "1" } }) {
        deeper
        File.write("a", "text")
        File.rename("a", "b")
        File.symlink("b", "l")
        File.readlink("l")
        Dir.mkdir("d")
        Dir.chdir("d") { File.stat("../b"); Dir.rmdir("../none") rescue nil }
        Dir.children(".")
      }
    RUBY
    part = segment
    assert_complete(part)
    look, = calls_on(file("nope"), part)
    assert_equal [2, nil, @dir, part.header.pid], [look.errno, look.result, look.cwd, look.pid]
    assert_match(/stat/, look.name)
    assert_equal %w[Object#look:1 Object#deeper:2], stack(part, look).grep(/Object#/).first(3).reject { |name| name.start_with?("block") }
    write = calls_on(file("a"), part)
    assert_equal "openat", write.first.name
    assert_equal 0o1101, write.first.flags & 0o1103
    assert_includes write.map(&:name), "close"
    rename = calls_on(file("b"), part).find { |call| call.name.start_with?("rename") }
    assert_equal [file("a"), file("b"), 0], rename.to_a.values_at(1, 2, 3)
    assert_equal ["b", file("l")], calls(part).find { |call| call.name.start_with?("symlink") }.to_a.values_at(1, 2), "a link's text is relative to nothing"
    inside, = calls_on(file("d/../b"), part)
    assert_equal file("d"), inside.cwd
    assert_equal 2, calls_on(file("d/../none"), part).first.errno
    assert_operator calls_on(@dir, part).count { |call| call.name == "getdents64" }, :>=, 2
    at = calls(part).map { |call| call.at_ns + call.ns }
    assert_equal at.sort, at, "in the order of their ends"
    assert_operator at.last, :<=, part.stat("elapsed_ns")
  end

  def test_folders_by_descriptor
    run_program(<<~'RUBY')
      require "fileutils"
      FileUtils.mkdir_p("tree/x/y")
      File.write("tree/x/y/f", "")
      record(collectors: { "syscalls" => { "stacks" => "1" } }) { FileUtils.rm_r("tree"); Dir.glob("*", base: ".") }
    RUBY
    assert_complete(segment)
    assert_empty calls.map(&:path).compact.reject { |path| path.start_with?("/") }
    assert_equal 1, calls_on(file("tree/x/y/f")).count { |call| call.name.start_with?("unlink") && call.errno.zero? }
  end

  def test_options
    run_program(<<~'RUBY')
      require "socket"
      work = -> { File.read("prelude.rb"); UNIXSocket.pair.each(&:close); IO.pipe.each(&:close) }
      Pitwall.syscalls(record: "io.pit", io: true, &work)
      Pitwall.syscalls(record: "count.pit", count: true, &work)
      Pitwall.syscalls(record: "plain.pit", stacks: false, &work)
    RUBY
    io = segment("io.pit")
    assert_complete(io)
    read = calls_on(file("prelude.rb"), io).select { |call| call.name == "read" }
    assert_equal File.size(file("prelude.rb")), read.sum(&:result)
    assert_includes io.syscall_totals.keys, "socketpair"
    count = segment("count.pit")
    assert_empty calls(count)
    assert count.syscalls?
    plain = segment("plain.pit")
    assert_equal plain.syscall_totals.transform_values(&:first), count.syscall_totals.transform_values(&:first)
    refute_includes plain.syscall_totals.keys, "read"
    assert_equal [0], calls(plain).map(&:node).uniq
  end

  # A program of many kinds of calls, for strace.
  VARIED = <<~'RUBY'
    require "json"; require "set"; require "tempfile"; require "open3"; require "erb"; require "fileutils"; require "tmpdir"
    Dir.glob("#{RbConfig::CONFIG["rubylibdir"]}/*.rb").first(50).each { |f| File.size(f); File.realpath(f) }
    Tempfile.create("x") { |f| f.write "hi"; f.flush; File.read(f.path) }
    Array.new(8) { |i| Thread.new { 50.times { File.exist?("nope#{i}"); File.read("/proc/self/comm"); Dir.children("/proc/self") } } }.each(&:join)
    Open3.capture2("cat", stdin_data: "x")
    `true`; system("exit 3"); Process.wait(spawn("true"))
    Process.wait(fork { 20.times { File.stat("/") } })
    Dir.mktmpdir { |d| Dir.chdir(d) { File.write("a", "b"); File.symlink("a", "l"); File.realpath("l"); FileUtils.rm_rf("l") } }
    trap("USR1") { File.exist?("trapped") }
    5.times { Process.kill(:USR1, $$); File.exist?("x") }
    GC.start
  RUBY

  def as_given(path) = path && [path, path.delete_prefix("#{@dir}/")]

  def test_sees_exactly_what_strace_sees
    skip "peer absent: strace" unless system("command -v strace > /dev/null")
    names = Pitwall::Native.syscall_names(false).map { |name| "?#{name}" }.join(",")
    wrapper = ["strace", "-f", "-qq", "-s", "4096", "-o", "strace.log", "-e", "trace=prctl,#{names}", "-e", "signal=none"]
    run_program("require 'rbconfig'\nPitwall.syscalls(record: 'a.pit') {\n#{VARIED}\n}", wrapper: wrapper)
    theirs = StraceLog.new(file("strace.log")).calls
    skip "peer absent: strace may not trace here" if theirs.empty?
    parts = Dir[file("a*.pit")].flat_map { |name| Pitwall::Record.read(name).segments }
    parts.each { |part| assert_complete(part) }
    ours = parts.flat_map { |part| calls(part) }
    assert_operator ours.size, :>, 3000
    assert_operator ours.map(&:tid).uniq.size, :>=, 10
    assert_same_calls(theirs.group_by(&:tid), ours.group_by(&:tid))
  end

  # The same sequence in each thread.
  def assert_same_calls(theirs, ours)
    assert_equal theirs.keys.sort, ours.keys.sort
    theirs.each do |tid, expected|
      expected.zip(ours.fetch(tid)).each_with_index do |(wanted, call), at|
        where = "thread #{tid}, call #{at}: #{wanted} #{call}"
        assert call, where
        assert_equal [wanted.name, wanted.result], [call.name, call.errno.zero? ? call.result : "E#{call.errno}"], where
        assert_path(wanted.paths.first, call, where) unless %w[symlink symlinkat].include?(call.name)
      end
      assert_equal expected.size, ours.fetch(tid).size
    end
  end

  # Relative ones start from the working directory or a descriptor's folder; a path of "" stands for the descriptor.
  def assert_path(given, call, where)
    return if given.nil? || given.empty?
    return assert_equal given, call.path, where if given.start_with?("/")

    assert call.path.start_with?("/") && call.path.end_with?("/#{given.delete_prefix("./")}") || given == ".", where
  end
end

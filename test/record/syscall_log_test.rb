# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/record/syscall_log"
require "stringio"
require "zlib"

# Logs of system calls in all their forms, and what is none.
class SyscallLogTest < Minitest::Test
  Log = Pitwall::Record::SyscallLog

  def test_the_studys_form
    log, calls = read("open\t/a\tb.rb\nstat64\tlib/x\nsocket\nclose\t/a\tb.rb\nopen\t\xFF\xFE".b)
    assert_equal "plain", log.format
    assert_equal [["open", "/a\tb.rb"], ["stat64", "lib/x"], ["socket", nil], ["close", "/a\tb.rb"], ["open", "\xFF\xFE".b]], calls.map { |call| [call.name, call.path] }
    assert_empty log.warnings
  end

  def test_strace_with_everything
    log, calls = read(<<~'LOG')
      1201 12:00:00.000100 execve("/usr/bin/ruby", ["ruby", "x.rb"], 0x7ffd /* 20 vars */) = 0 <0.000500>
      1201 12:00:00.000700 openat(AT_FDCWD</srv/app>, "lib/a.rb", O_RDONLY|O_CLOEXEC) = 5</srv/app/lib/a.rb> <0.000021>
      1201 12:00:00.000800 newfstatat(5</srv/app/lib/a.rb>, "", {st_mode=S_IFREG|0644, st_size=3, ...}, AT_EMPTY_PATH) = 0 <0.000010>
      1201 12:00:00.000900 read(5</srv/app/lib/a.rb>,  <unfinished ...>
      1202 12:00:00.000950 newfstatat(AT_FDCWD</srv/app>, "/opt", {st_mode=S_IFDIR|0755, st_size=4096, ...}, AT_SYMLINK_NOFOLLOW) = 0 <0.000010>
      1201 12:00:00.001000 <... read resumed>"x = \") = 7 <0.5>", 8192) = 17 <0.000110>
      1201 12:00:00.001100 readlink("/opt/\303\251\n\"q\"", 0x7ffd, 1023) = -1 EINVAL (Invalid argument) <0.000009>
      1201 12:00:00.001200 --- SIGCHLD {si_signo=SIGCHLD} ---
      1201 12:00:00.001300 close(5</srv/app/lib/a.rb>) = 0 <0.000008>
      1201 12:00:00.001400 read(7<pipe:[123]>, "x", 1) = 1 <0.000008>
      1201 12:00:00.001500 rename("/a", "/b") = -1 ENOENT (No such file or directory) <0.000008>
      1202 12:00:00.001600 +++ exited with 0 +++
    LOG
    assert_equal "strace", log.format
    assert_empty log.warnings
    assert_equal %w[execve openat newfstatat newfstatat read readlink close read rename], calls.map(&:name)
    assert_equal ["/usr/bin/ruby", *["/srv/app/lib/a.rb"] * 2, "/opt", "/srv/app/lib/a.rb", "/opt/\u00e9\n\"q\"".b, "/srv/app/lib/a.rb", nil, "/a"], calls.map(&:path)
    opened, fstat, lstat, read, readlink = calls[1..5]
    assert_equal [5, 0, 0o2000000, 21_000, 1201, 600_000], [opened.result, opened.errno, opened.flags, opened.ns, opened.tid, opened.at_ns]
    assert_equal [0x1000, 0x100], [fstat.flags, lstat.flags]
    assert_equal [17, 110_000, 800_000], [read.result, read.ns, read.at_ns]
    assert_equal [nil, Errno::EINVAL::Errno], [readlink.result, readlink.errno]
    assert_equal "/b", calls.last.path2
  end

  def test_strace_follows_descriptors_folders_and_processes_itself
    _, calls = read(<<~'LOG')
      chdir("/srv")                           = 0
      openat(AT_FDCWD, "lib", O_RDONLY|O_DIRECTORY) = 5
      openat(5, "a.rb", O_RDONLY)             = 6
      dup(6)                                  = 9
      close(6)                                = 0
      read(9, "x", 10)                        = 1
      read(6, 0x1, 10)                        = -1 EBADF (Bad file descriptor)
      fcntl(9, F_DUPFD_CLOEXEC, 10)           = 10
      clone3({flags=CLONE_VM|CLONE_FILES, exit_signal=0} => {parent_tid=[77]}, 88) = 77
      [pid    77] read(10, "x", 1)            = 1
      [pid    77] close(10)                   = 0
      read(10, 0x1, 1)                        = -1 EBADF (Bad file descriptor)
      stat("x", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0
      fchdir(5)                               = 0
      access(".", R_OK)                       = 0
      mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 9, 0) = 0x7f0000
      getpid()                                = 1
    LOG
    assert_equal ["/srv", "/srv/lib", "/srv/lib/a.rb", "/srv/lib/a.rb", "/srv/lib/a.rb", "/srv/lib/a.rb", nil, "/srv/lib/a.rb", "/srv/lib/a.rb", "/srv/lib/a.rb", nil, "/srv/x", "/srv/lib", "/srv/lib", "/srv/lib/a.rb"],
                 calls.map(&:path)
    assert_equal [0o200000, nil, "/srv"], [calls[1].flags, calls[0].cwd, calls[1].cwd]
  end

  def test_times_of_strace_count_from_the_first_line
    { "%s.%06d" => [[1_700_000_000, 5], [1_700_000_001, 7]], "23:59:%02d.%06d" => [[58, 5], [59, 7]], "     %d.%06d" => [[0, 0], [1, 2]] }.each do |form, (first, second)|
      _, calls = read([first, second].map { |at| "#{format(form, *at)} close(3) = 0\n" }.join)
      assert_equal [0, 1_000_002_000], calls.map(&:at_ns), form
    end
    _, calls = read("23:59:59 close(3) = 0\n00:00:01 close(3) = 0\n")
    assert_equal [0, 2_000_000_000], calls.map(&:at_ns)
  end

  def test_dtruss
    log, calls = read(<<~'LOG')
      	PID/THRD  RELATIVE  ELAPSD SYSCALL(args) 		 = return
       432/0x1a2b:       130      12 open("/a.rb\0", 0x1000000, 0x0)		 = 5 0
       432/0x1a2b:       150       4 fstat64(0x5, 0x7FFE, 0x0)		 = 0 0
       432/0x1a2b:       160       4 read_nocancel(0x5, "x = 1\n\0", 0x2000)		 = 6 0
       432/0x1a2b:       170       2 close(0x5)		 = 0 0
       432/0x1a2b:       180       2 stat64("/b.rb\0", 0x7FFE, 0x0)		 = -1 Err#2
       432/0x1a2b:       190       2 getpid(0x0, 0x0, 0x0)		 = 432 0
    LOG
    assert_equal ["dtruss", %w[open fstat64 read_nocancel close stat64], [*["/a.rb"] * 4, "/b.rb"]], [log.format, calls.map(&:name), calls.map(&:path)]
    assert_equal [[432, 130_000, 12_000, 5, 0], [432, 180_000, 2000, nil, 2]], calls.values_at(0, 4).map { |call| [call.pid, call.at_ns, call.ns, call.result, call.errno] }
  end

  def test_bpftrace
    log, calls = read("Attaching 3 probes...\nPID    COMM               FD ERR PATH\n12     ruby                5   0 /a b.rb\n13     my prog            -1   2 /c\n")
    assert_equal ["bpftrace", [["open", "/a b.rb", 12, 5, 0], ["open", "/c", 13, nil, 2]]], [log.format, calls.map { |call| [call.name, call.path, call.pid, call.result, call.errno] }]
    _, calls = read("ruby 12 tracepoint:syscalls:sys_enter_openat /a.rb\n12 sys_enter_newfstatat: /b\n@ sys_enter_close\n")
    assert_equal [["openat", "/a.rb"], ["newfstatat", "/b"], ["close", nil]], calls.map { |call| [call.name, call.path] }
  end

  def test_gzip_also_in_several_members_and_cut_short
    plain = (1..3000).map { |n| "open\t/a/#{n}.rb\n" }.join
    zipped = Zlib.gzip(plain)
    assert_equal 3000, read(zipped)[1].size
    assert_equal 6000, read(zipped + zipped)[1].size
    log, calls = read(zipped.byteslice(0, zipped.bytesize / 2))
    assert calls.size.between?(100, 2999), calls.size
    assert_match(/gzip data ends too early/, log.warnings.map(&:message).join)
    log, calls = read(zipped + "garbage")
    assert_equal 3000, calls.size
    assert_match(/gzip data is damaged/, log.warnings.map(&:message).join)
  end

  def test_what_cannot_be_read_is_counted_and_the_rest_counts
    log, calls = read("open\t/a\n#{"\x00\x01\xFE garbage".b}\nstat64\t/b\n= 3\nclose\t/a\n")
    assert_equal 3, calls.size
    assert_equal 2, log.unreadable
    assert_match(/2 lines could not be read \(the first: "\\x00\\x01\? garbage"\); the rest counts/, log.warnings.first.message)
    half = "openat(AT_FDCWD, \"/a\", O_RDONLY) = 5\nread(5, \"x\", 1) = 1\nopenat(AT_FDCWD, \"/us"
    log, calls = read(half)
    assert_equal [2, 1], [calls.size, log.unreadable]
    log, calls = read("1 openat(AT_FDCWD, \"/a\", O_RDONLY <unfinished ...>\n2 close(3) = 0\n1 <... openat resumed>) = 4\n3 <... read resumed>) = 1\n2 close(4 <unfinished ...>\n")
    assert_equal [2, 1, true], [calls.size, log.unreadable, log.warnings.any? { |warning| warning.message.include?("never ended") }]
  end

  # Blocks of nothing but name<TAB>path are read in another way than those that hold other lines.
  def test_whole_and_mixed_blocks_of_the_studys_form_give_the_same
    random = Random.new(3)
    odd = ["socket", "open\t/a\tb", "", "\r", "= 3", "?\t/x", "%LOAD\t/m", "\t", "close\t", "open\t/\xFF".b, "x" * 70_000, "read\t/#{"y" * 70_000}"]
    6.times do |round|
      lines = Array.new(30_000) { random.rand(round < 2 ? 20_000 : 200).zero? ? odd[random.rand(odd.size)] : "#{%w[open read open$nocancel][random.rand(3)]}\t/some/folder/#{random.rand(3)}" }
      lines[0] = odd[0] if round == 5
      text = lines.map(&:b).join("\n") << ("\n" * (round % 2))
      log, calls = read(text)
      names = {}
      pairs = []
      bare = Log.open(StringIO.new(text))
      bare.each_bare(names, ->(name) { name.start_with?("%") ? name : names[name] = name }) { |name, call| pairs << [name, call.path] }
      assert_equal calls.map { |call| [call.name, call.path] }, pairs, round
      assert_equal [log.unreadable, log.warnings.map(&:message)], [bare.unreadable, bare.warnings.map(&:message)]
      assert_equal lines.count { |line| line.bytesize <= 65_536 && line.match?(/\A%?[a-z$_]+(\t|\z)/in) }, pairs.size
    end
  end

  # What HEAD takes apart, and what is known from the lines before.
  def test_strace_lines_that_begin_as_others_did_give_the_same
    strace = Pitwall::Record::SyscallLog::Strace
    each_by_expression = Class.new(strace) { private def begins_as_known(*) = false }
    random = Random.new(11)
    forms = ["", "12 ", "[pid  7] ", "12 10:00:%02d.%06d ", "9 23:59:%02d.%06d ", "13 1700000%03d.%06d ", "14      %d.%06d ", "10:00:%02d.%06d ", "15 10:00:%02d ", "12 10:00:%02d.%03d "]
    calls = ["close(3) = 0 <0.000012>", 'openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.5>', "getpid() = 1", "read(3,  <unfinished ...>", '<... read resumed>"x = (1. ", 9) = 4', "dup(3) = -1 EMFILE (Too many open files)",
             "close(4) = -", "--- SIGCHLD {si_signo=SIGCHLD} ---", 'stat("/x.y (z", 0x1) = -1 ENOENT', "close(3) = 0 <0.0x>", "(close(3) = 0"]
    50.times do
      mine = forms.sample(3, random: random)
      lines = Array.new(200) { format("#{mine.sample(random: random)}%<call>s".sub("%<call>s", "%%s"), random.rand(60), random.rand(1_000_000)).then { |text| text.sub("%s") { calls.sample(random: random) } } }
      lines.each { |line| line.setbyte(random.rand(line.bytesize), random.rand(32..126)) if random.rand(20).zero? }
      results = [strace, each_by_expression].map do |kind|
        parser = kind.new
        found = []
        parser.lines(lines.map(&:dup)) { |call| found << call.to_a }
        parser.finish
        [found, parser.unreadable, parser.first_unreadable, parser.remarks]
      end
      assert_equal results[1], results[0]
      refute_empty results[0][0]
    end
  end

  def test_long_lines_and_paths
    path = "/#{"x" * 254}" * 16
    escaped = path.gsub("x") { "\\170" }
    assert_equal path, read("stat(\"#{escaped}\", 0x1) = 0\n")[1].first.path
    log, calls = read("open\t/a\n#{"x" * 300_000}\nopen\t/b\n#{"y" * 3_000_000}\nopen\t/c")
    assert_equal [%w[/a /b /c], 2], [calls.map(&:path), log.unreadable]
  end

  def test_what_is_no_log
    random = Random.new(1)
    { "" => /is empty/, "\n\n" => /is empty/, random.bytes(100_000) => /holds no system calls/, "PK\x03\x04zip".b => /zip archive/, "\x28\xB5\x2F\xFDx".b => /zstd -dc/, "PITWALL recording 1\n" => /is a recording/,
      "% time     seconds  usecs/call     calls    errors syscall\n" => /leave out -c/, "Dear reader,\nopen the file\nclose it.\nThe end.\n" => /holds no system calls/ }.each do |text, expected|
      error = assert_raises(Pitwall::BadRecording, text[0, 20].inspect) { read(text) }
      assert_match expected, error.message
    end
    assert_raises(Pitwall::UsageError) { Log.open("/nowhere/at/all") }
    assert_raises(Pitwall::UsageError) { Log.open(__dir__) }
  end

  # Whatever stands in it: calls, warnings or one line that says no, in no time.
  def test_damaged_logs_never_break_the_reader
    logs = ["openat(AT_FDCWD</s>, \"a\\303\\251\", O_RDONLY|O_CLOEXEC) = 5</s/a> <0.000012>\n12 <... read resumed>\"x\", 3) = 1\nrename(\"a\", \"b\") = 0\n[pid 3] close(5 <unfinished ...>\n" * 6,
            " 432/0x1a2b:       130      12 open(\"/a.rb\\0\", 0x1000000, 0x0)\t\t = 5 0\n" * 8, "open\t/a\nclose\t/a\n" * 10, "PID    COMM               FD ERR PATH\n12     ruby                5   0 /a\n" * 6]
    random = Random.new(7)
    400.times do |round|
      text = logs[round % logs.size].b
      random.rand(1..12).times { text.setbyte(random.rand(text.bytesize), random.rand(256)) }
      text = text.byteslice(0, random.rand(1..text.bytesize)) if round.odd?
      begin
        log, calls = read(text)
        assert(calls.all? { |call| call.name.is_a?(String) && (call.path.nil? || call.path.is_a?(String)) })
        log.warnings.each { |warning| assert_equal 1, warning.message.lines.size }
      rescue Pitwall::BadRecording => error
        assert_equal 1, error.message.lines.size
      end
    end
  end

  private

  def read(text)
    log = Log.open(StringIO.new(text.b))
    calls = []
    log.each { |call| calls << call }
    [log, calls]
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/syscall_dispatch"
require_relative "../support/recorded_program"
require "pitwall"

# Programs that do with signals, processes and filters what makes it hard to see their calls from inside: they behave as without Pitwall.
class SyscallsHazardsTest < Minitest::Test
  include SyscallDispatch
  include RecordedProgram

  def setup
    super
    skip_without_dispatch
  end

  # C functions by name.
  C = <<~'RUBY'
    require "fiddle"
    def c(name, *types) = Fiddle::Function.new(Fiddle.dlopen(nil)[name], types, Fiddle::TYPE_LONG)
    LONG = Fiddle::TYPE_LONG
    POINTER = Fiddle::TYPE_VOIDP
    def look = 10.times { File.stat("/") }
  RUBY
  START = 'start(mode: "none", collectors: { "syscalls" => { "stacks" => "1" } }, flush_ns: 50_000_000)'

  # Runs it with and without being looked at: what it says and how it ends must be the same.
  # @return [Array<Record::Segment>] what was recorded
  def unharmed(source, before: C)
    without = attempt(before + source.gsub("START", "nil").gsub("STOP", "nil"), options: gem_options("fiddle"))
    FileUtils.rm_f(Dir[file("*.pit")])
    with = attempt(before + source.gsub("START", START).gsub("STOP", "stop"), options: gem_options("fiddle"))
    assert_equal [without.out, without.err, without.status.exitstatus, without.status.termsig], [with.out, with.err, with.status.exitstatus, with.status.termsig]
    Dir[file("*.pit")].sort_by { |name| [name.size, name] }.flat_map { |name| Pitwall::Record.read(name).segments }
  end

  # How often `look` looked.
  def looks(part, path = "/")
    found = 0
    part.each_syscall { |call| found += 1 if call.path == path && call.name =~ /stat/ }
    assert_equal 0, part.syscall_facts.lost
    assert_equal part.syscall_totals.values.sum(&:first), count(part)
    found
  end

  def count(part)
    found = 0
    part.each_syscall { found += 1 }
    found
  end

  def test_all_signals_blocked
    parts = unharmed(<<~'RUBY')
      trap("USR1") { puts "usr1" }
      all, before = Fiddle::Pointer.malloc(128), Fiddle::Pointer.malloc(128)
      START
      c("sigfillset", POINTER).call(all)
      p c("pthread_sigmask", Fiddle::TYPE_INT, POINTER, POINTER).call(2, all, before)
      look
      Process.kill("USR1", $$)
      p c("pthread_sigmask", Fiddle::TYPE_INT, POINTER, POINTER).call(2, before, nil)
      look
      sleep 0.05
      STOP
    RUBY
    assert_equal 20, looks(parts.first)
  end

  def test_a_mask_for_the_time_of_a_call
    parts = unharmed(<<~'RUBY')
      trap("USR1") { puts "usr1" }
      all = Fiddle::Pointer.malloc(128)
      c("sigfillset", POINTER).call(all)
      time = [0, 10_000_000].pack("qq")
      START
      p c("ppoll", POINTER, LONG, POINTER, POINTER).call(nil, 0, time, all)
      p c("pselect", LONG, POINTER, POINTER, POINTER, POINTER, POINTER).call(0, nil, nil, nil, time, all)
      look
      STOP
    RUBY
    assert_equal 10, looks(parts.first)
  end

  def test_handlers_that_block_all_signals
    parts = unharmed(<<~'RUBY')
      # Ruby's handler of USR1, with a mask that blocks everything.
      trap("USR1") { puts "usr1" }
      action = Fiddle::Pointer.malloc(256)
      c("sigaction", LONG, POINTER, POINTER).call(Signal.list["USR1"], nil, action)
      action[8, 128] = "\xff".b * 128
      START
      p c("sigaction", LONG, POINTER, POINTER).call(Signal.list["USR1"], action, nil)
      Process.kill("USR1", $$)
      look
      sleep 0.05
      STOP
    RUBY
    assert_equal 10, looks(parts.first)
  end

  def test_its_own_handler_of_sigsys
    parts = unharmed(<<~'RUBY')
      START
      p trap("SYS") { File.stat("/usr"); puts "mine" }
      look
      Process.kill("SYS", $$)
      sleep 0.05
      p trap("SYS", "IGNORE").class
      Process.kill("SYS", $$)
      look
      STOP
    RUBY
    assert_equal [20, 1], [looks(parts.first), looks(parts.first, "/usr")]
  end

  def test_dies_of_sigsys
    unharmed("START\nlook\nc('signal', LONG, LONG).call(Signal.list['SYS'], 0)\nProcess.kill('SYS', $$)\nsleep 5\nputs 'alive'")
  end

  # A filter that ends the process for what Pitwall would have to ask of the kernel.
  def test_its_own_seccomp_filter
    parts = unharmed(<<~'RUBY')
      START
      look
      call = c("syscall", *[LONG] * 6)
      p call.call(157, 38, 1, 0, 0, 0)
      instructions = [[0x20, 0, 0, 0], [0x15, 0, 3, 157], [0x20, 0, 0, 16], [0x15, 0, 1, 59], [6, 0, 0, 0x80000000], [6, 0, 0, 0x7fff0000]].map { |row| row.pack("SCCL") }.join
      program = [instructions.bytesize / 8, [instructions].pack("P").unpack1("Q")].pack("Sx6Q")
      p call.call(317, 1, 0, [program].pack("P").unpack1("Q"), 0, 0)
      look
      Thread.new { look }.join
      p system("true")
      Process.wait(fork { look; exit!(3) })
      p $?.exitstatus
      STOP
    RUBY
    assert_equal [10, :seccomp], [looks(parts.first), parts.first.syscall_facts.stopped_by]
  end

  def test_processes_of_all_kinds
    parts = unharmed(<<~'RUBY')
      START
      look
      p system("exit 3"), `echo out`, $?.exitstatus
      20.times { Process.wait(spawn("exit 4")) }
      p $?.exitstatus
      IO.popen(["cat"], "r+") { |io| io.write "x"; io.close_write; p io.read }
      p c("system", POINTER).call("exit 5"), c("pclose", POINTER).call(c("popen", POINTER, POINTER).call("exit 6", "r"))
      p Process.wait2(fork { look; exit 7 })[1].exitstatus
      p Process.wait2(fork { Process.wait(fork { look; exit! 8 }); exit! $?.exitstatus })[1].exitstatus
      p Process.wait2(fork { Process.kill(:KILL, $$); sleep })[1].termsig
      p (spawn("no-such-command") rescue $!.class)
      p (exec("no-such-command") rescue $!.class)
      look
      STOP
    RUBY
    assert_equal 20, looks(parts.first)
    assert_equal [0, 10, 10], parts.drop(1).select(&:syscalls?).map { |part| looks(part) }.sort
  end

  def test_becomes_another_program
    parts = unharmed("START\nlook\nexec('sh', '-c', 'exit 9')")
    assert_equal 10, looks(parts.first), "what is left of it is whole"
    parts = unharmed("START\nThread.new { look }.join\nlook\nexit!(4)")
    assert_equal 20, looks(parts.first)
    assert_equal "exit!", parts.first.tail&.fetch("reason")
    parts = unharmed("START\nlook\nThread.new { Process.daemon(true, true); look; STOP; File.write('done', '') }.join if !Process.wait(fork { exit })\nFile.exist?('x')")
    assert_equal 10, looks(parts.first)
  end

  # The tables of loaded objects are put back at the end, which reads /proc/self/maps.
  def test_no_descriptor_is_left_at_the_end
    parts = unharmed(<<~'RUBY', before: "")
      START
      10.times { File.stat("/") }
      Process.setrlimit(Process::RLIMIT_NOFILE, 0, Process.getrlimit(Process::RLIMIT_NOFILE).last)
      STOP
      begin
        File.open("/")
      rescue Errno::EMFILE => error
        puts error.class
      end
    RUBY
    assert_equal 10, looks(parts.first)
  end

  def test_dies_inside_a_call
    parts = unharmed(<<~'RUBY')
      START
      look
      File.mkfifo("pipe") unless File.exist?("pipe")
      Thread.new { flushed if File.exist?("a.pit"); Process.kill(:KILL, $$) }
      File.open("pipe")
    RUBY
    assert_equal 10, looks(parts.first)
  end

  # Interrupted, restarted and nested calls.
  def test_signals_in_the_middle_of_calls
    parts = unharmed(<<~'RUBY')
      trap("USR1") { File.stat("/usr") }
      me = $$
      START
      sender = spawn("i=0; while [ $i -lt 300 ]; do kill -USR1 #{me} || exit; i=$((i+1)); done")
      reader, writer = IO.pipe
      answers = Thread.new { reader.read }
      300.times { writer.write("x"); Thread.pass; File.exist?("nope"); sleep 0.0002 }
      writer.close
      p answers.value.size
      Process.wait(sender)
      sleep 0.1
      look
      STOP
    RUBY
    assert_equal 10, looks(parts.first)
    assert_operator looks(parts.first, "/usr"), :>, 0
    assert_equal 300, looks(parts.first, file("nope"))
  end

  def test_threads_fibers_and_ractors
    parts = unharmed(<<~'RUBY')
      early = Thread.new { Thread.stop; look }
      Thread.pass until early.stop?
      START
      early.run.join
      40.times.map { |i| Thread.new { Fiber.new { look; Fiber.yield; look }.tap(&:resume).resume } }.each(&:join)
      Thread.new { Thread.new { look }.join; Thread.exit }.join
      t = Thread.new { sleep }; Thread.pass until t.stop?; t.kill.join
      STOP
    RUBY
    with_events = Pitwall::Native.thread_states?("none")
    assert_equal 810 + (with_events ? 10 : 0), looks(parts.first)
  end

  def test_garbage_collection_and_compaction
    parts = unharmed(<<~'RUBY')
      START
      GC.stress = true
      3.times { File.stat("/").size.to_s }
      GC.stress = false
      200.times { File.open("/usr") } # closed by the collector
      GC.start
      3.times { GC.respond_to?(:compact) && (GC.compact rescue nil); [1].each { File.stat("/") } }
      STOP
    RUBY
    assert_equal 6, looks(parts.first)
  end

  # What a call must leave as it was: the stack below its pointer and all registers but three. Ruby's own code relies on little of that, this
  # function on all.
  def test_registers_and_red_zone_are_left_alone
    skip "peer absent: a C compiler" unless system("command -v cc > /dev/null")
    File.write(file("keep.c"), <<~'C')
      #include <string.h>
      #include <stdint.h>
      /* 0, or which of them changed */
      long keep(const char *path, char *buffer) {
          uint64_t in[4] = {1, 2, 3, 4}, out[4] = {0}, general[4], red = 0;
          long result;
          __asm__ volatile(
              "movdqu (%[in]), %%xmm0\n movdqu 16(%[in]), %%xmm7\n movdqu (%[in]), %%xmm15\n"
              "movq $0x77, -120(%%rsp)\n movq $0x88, -8(%%rsp)\n"
              "mov $11, %%r8\n mov $12, %%r9\n mov $13, %%r10\n mov $14, %%r12\n"
              "mov $4, %%eax\n syscall\n"
              "mov %%r8, (%[general])\n mov %%r9, 8(%[general])\n mov %%r10, 16(%[general])\n mov %%r12, 24(%[general])\n"
              "mov -120(%%rsp), %%r8\n add -8(%%rsp), %%r8\n mov %%r8, (%[red])\n"
              "movdqu %%xmm0, (%[out])\n movdqu %%xmm7, 16(%[out])\n pxor %%xmm0, %%xmm15\n movq %%xmm15, %%r9\n add %%r9, (%[red])\n"
              : "=&a"(result) : [in] "r"(in), [out] "r"(out), [general] "r"(general), [red] "r"(&red), "D"(path), "S"(buffer)
              : "rcx", "r8", "r9", "r10", "r11", "r12", "xmm0", "xmm7", "xmm15", "memory");
          if (result != 0) return 1000 - result;
          if (memcmp(in, out, sizeof in)) return 1;
          if (general[0] != 11 || general[1] != 12 || general[2] != 13 || general[3] != 14) return 2;
          return red == 0x77 + 0x88 ? 0 : 3;
      }
    C
    assert system("cc", "-O1", "-shared", "-fPIC", "-mno-red-zone", "-o", file("keep.so"), file("keep.c"))
    parts = unharmed(<<~'RUBY')
      keep = Fiddle::Function.new(Fiddle.dlopen(File.expand_path("keep.so"))["keep"], [POINTER, POINTER], LONG)
      buffer = Fiddle::Pointer.malloc(256)
      keep.call("/", buffer)
      START
      p 200.times.map { keep.call("/", buffer) }.uniq, keep.call("/none", buffer)
      STOP
    RUBY
    assert_equal [200, 1], [looks(parts.first), looks(parts.first, "/none")]
  end

  def test_paths_that_cannot_be_read
    parts = unharmed(<<~'RUBY')
      call = c("syscall", *[LONG] * 5)
      long = "/" + "x" * 5000
      START
      p call.call(4, 1, 0, 0, 0), call.call(4, 0, 0, 0, 0), call.call(21, 8, 99, 0, 0), call.call(257, -1, 0, 0, 0)
      p (File.stat("a" * 5000) rescue $!.class), (File.stat("/tmp/" + "y" * 300) rescue $!.class), (File.stat("") rescue $!.class)
      p call.call(500, 0, 0, 0, 0), call.call(9999, 0, 0, 0, 0), call.call(-1, 0, 0, 0, 0)
      File.stat("/proc/self/\xff\xfe") rescue p $!.class
      look
      STOP
    RUBY
    assert_equal 10, looks(parts.first)
    errnos = []
    parts.first.each_syscall { |call| errnos << call.errno if call.path.nil? && %w[stat access openat].include?(call.name) }
    assert_equal [Errno::EFAULT::Errno, Errno::EFAULT::Errno, Errno::EINVAL::Errno], errnos.first(3)
  end

  # Once a recording has ended, and in the next.
  def test_again_and_again
    parts = unharmed(<<~'RUBY')
      threads = 4.times.map { Thread.new { until $over; File.exist?("x"); Thread.pass; end } }
      5.times { |i| START; look; STOP; look }
      $over = true
      threads.each(&:join)
    RUBY
    assert_equal 10, looks(parts.first)
  end
end

# The same where each call comes by way of a signal, as most do that the C library makes for itself.
class SyscallsHazardsBySignalTest < SyscallsHazardsTest
  def environment(env) = super.merge("PITWALL_SYSCALL_SHORTCUTS" => "0")
end

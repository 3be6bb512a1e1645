# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/syscall_dispatch"
require_relative "../support/recorded_program"
require "pitwall"

# Functions of the C library that are stood in for, so that their calls need no signal: they do what the C library's do, and the log is the same.
class SyscallShortcutsTest < Minitest::Test
  include SyscallDispatch
  include RecordedProgram

  def setup
    super
    skip_without_dispatch
  end

  OFF = { "PITWALL_SYSCALL_SHORTCUTS" => "0" }.freeze
  START = 'start(mode: "none", collectors: { "syscalls" => { "stacks" => "1" } }, flush_ns: 50_000_000)'
  # Says how many calls needed a signal in a block.
  SIGNALS = "def signals = Pitwall::Native.syscall_signals.then { |before| yield; Pitwall::Native.syscall_signals - before }\n"

  # Functions in C, which call the C library's the way an extension does.
  C = <<~'C'
    #define _GNU_SOURCE
    #include <errno.h>
    #include <fcntl.h>
    #include <pthread.h>
    #include <setjmp.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/ioctl.h>
    #include <sys/stat.h>
    #include <sys/time.h>
    #include <sys/wait.h>
    #include <termios.h>
    #include <unistd.h>

    static struct stat s;

    int look(const char *path) { return stat(path, &s); }

    static char *say(char *to, const char *what, long result) { return to + sprintf(to, "%s %ld %d\n", what, result, result < 0 ? errno : 0); }
    #define TRY(call) (errno = 0, to = say(to, #call, (long)(call)))

    /* What each returns, and its errno. */
    void results(char *to) {
        char b[64] = {0};
        int fd;
        TRY(fd = open("made", O_RDWR | O_CREAT | O_TRUNC, 0604));
        TRY(fstat(fd, &s)); to = say(to, "mode", s.st_mode);
        TRY(write(fd, "hello", 5)); TRY(lseek(fd, 1, SEEK_SET)); TRY(read(fd, b, 3)); TRY(pread(fd, b, 9, 2)); TRY(lseek(fd, -9, SEEK_SET)); TRY(lseek(fd, 1L << 40, SEEK_SET));
        TRY(fcntl(fd, F_GETFD)); TRY(fcntl(fd, F_SETFD, FD_CLOEXEC)); TRY(fcntl(fd, F_GETFD)); TRY(fcntl(fd, F_GETFL) & O_ACCMODE); TRY(fcntl(fd, F_GETOWN)); TRY(fcntl(-3, F_GETFD));
        TRY(fcntl(fd, F_DUPFD_CLOEXEC, 100)); TRY(close(100)); TRY(close(100)); TRY(close(-1));
        TRY(ioctl(fd, FIONREAD, b)); TRY(isatty(fd)); to = say(to, "errno of isatty", errno); TRY(ioctl(fd, TCGETS, b));
        TRY(open("none/at/all", O_RDONLY)); TRY(open("made", O_RDWR | O_CREAT | O_EXCL, 0600)); TRY(open((char *)8, O_RDONLY)); TRY(openat(-9, "x", O_RDONLY));
        int folder, at, tmp;
        TRY(folder = open(".", O_RDONLY | O_DIRECTORY)); TRY(at = openat(folder, "made2", O_WRONLY | O_CREAT, 0611)); TRY(fstatat(folder, "made2", &s, 0)); to = say(to, "mode", s.st_mode);
        tmp = open(".", O_TMPFILE | O_RDWR, 0640);
        if (tmp >= 0) TRY(fstat(tmp, &s)), to = say(to, "mode", s.st_mode);
        symlink("made", "link");
        TRY(lstat("link", &s)); TRY(S_ISLNK(s.st_mode)); TRY(stat("link", &s)); TRY(S_ISLNK(s.st_mode)); TRY(fstatat(folder, "link", &s, AT_SYMLINK_NOFOLLOW)); TRY(S_ISLNK(s.st_mode));
        TRY(fstatat(fd, "", &s, AT_EMPTY_PATH)); TRY(S_ISREG(s.st_mode)); TRY(fstat(-1, &s)); TRY(fstat(99, &s)); TRY(stat("", &s)); TRY(stat("made", (void *)8)); TRY(lstat("none", &s));
        TRY(readlink("link", b, 60)); TRY(readlink("link", b, 2)); TRY(readlink("made", b, 60)); TRY(access("made", R_OK)); TRY(access("none", F_OK)); TRY(access("made", 99));
        TRY(read(fd, (void *)8, 3)); TRY(read(99, b, 3)); TRY(write(99, b, 3)); TRY(pread(fd, b, 3, -1)); TRY(close(fd)); TRY(close(folder)); TRY(close(at)); close(tmp);
    }

    /* Children in the same memory and in a copy, which look too. */
    int children(void) {
        int status, sum = 0;
        for (int i = 0; i < 5; i++) {
            pid_t child = vfork();
            if (child == 0) { stat("/in/vfork", &s); close(999); _exit(3); }
            stat("/after/vfork", &s);
            while (waitpid(child, &status, 0) < 0) continue; /* one that a signal ended waits again */
            sum += WEXITSTATUS(status);
            child = fork();
            if (child == 0) { stat("/in/fork", &s); _exit(4); }
            stat("/after/fork", &s);
            while (waitpid(child, &status, 0) < 0) continue; /* one that a signal ended waits again */
            sum += WEXITSTATUS(status);
        }
        return sum;
    }

    /* A handler that looks while others look, and makes processes. */
    static volatile int handled;
    static pthread_t disturbed_one;
    static void handle(int signo) {
        int saved = errno;
        if (!pthread_equal(pthread_self(), disturbed_one)) return; /* Ruby's or Pitwall's */
        struct stat mine;
        stat("/in/handler", &mine);
        if (handled++ % 16 == 0) { pid_t child = vfork(); if (child == 0) { access("/in/vfork", R_OK); _exit(0); } while (waitpid(child, NULL, 0) < 0) continue; }
        errno = saved;
    }
    int disturbed(int times) {
        struct sigaction a = {.sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK}, before;
        struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
        int wrong = 0;
        disturbed_one = pthread_self();
        sigaction(SIGPROF, &a, &before);
        setitimer(ITIMER_PROF, &often, NULL);
        for (int i = 0; i < times || handled < 20; i++) {
            wrong += stat("/outside/handler", &s) != -1 || errno != ENOENT;
            if (i % 64 == 0) { pid_t child = vfork(); if (child == 0) { access("/in/vfork", R_OK); _exit(0); } while (waitpid(child, NULL, 0) < 0) continue; }
        }
        setitimer(ITIMER_PROF, &never, NULL);
        sigaction(SIGPROF, &before, NULL);
        return wrong ? -wrong : handled;
    }

    /* Jumps out of whatever it is in, when it is time. */
    static sigjmp_buf away;
    static volatile int left;
    static void leave(int signo) { if (pthread_equal(pthread_self(), disturbed_one)) { left++; siglongjmp(away, 1); } }
    int leaves(int times) {
        struct sigaction a = {.sa_handler = leave}, before;
        struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
        disturbed_one = pthread_self();
        sigaction(SIGPROF, &a, &before);
        setitimer(ITIMER_PROF, &often, NULL);
        sigsetjmp(away, 1);
        while (left < times) fstatat(0, "relative", &s, 0), stat("/left", &s), chdir(".");
        setitimer(ITIMER_PROF, &never, NULL);
        sigaction(SIGPROF, &before, NULL);
        return left;
    }

    /* Calls until the stack ends, those that take most of it. */
    int deep(int n) {
        char frame[200];
        frame[n % 200] = 1;
        __asm__ volatile("" : : "r"(frame) : "memory");
        chdir(".");
        fstatat(0, "relative", &s, 0);
        return deep(n + 1) + frame[3];
    }

    /* Cancelled where it waits. */
    static void ends(void *unused) { write(1, "cancelled\n", 10); _exit(5); }
    static void *cancels(void *thread) { usleep(100000); pthread_cancel(*(pthread_t *)thread); return NULL; }
    int cancelled(const char *fifo) {
        pthread_t self = pthread_self(), other;
        int type, state;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        stat("/", &s);
        close(open("/", O_RDONLY));
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        if (type != PTHREAD_CANCEL_DEFERRED) return 1;
        pthread_create(&other, NULL, cancels, &self);
        pthread_cleanup_push(ends, NULL);
        open(fifo, O_RDONLY);
        pthread_cleanup_pop(0);
        return 2;
    }
  C

  # @return [String] the path of a library of C, whose functions are found when they are first called, or at once
  def library(source = C, name: "c", binding: "lazy")
    skip "peer absent: a C compiler" unless system("command -v cc > /dev/null")
    File.write(file("#{name}.c"), source)
    assert system("cc", "-O1", "-shared", "-fPIC", "-fplt", "-w", "-Wl,-z,#{binding}", "-Wl,-z,relro", "-o", file("#{name}.so"), file("#{name}.c"), "-lpthread")
    file("#{name}.so")
  end

  def ruby(source) = <<~RUBY + source.gsub("START", START).gsub("STOP", "stop")
    require "fiddle"
    LIBRARY = Fiddle.dlopen(#{file("c.so").inspect})
    def c(name, *types) = Fiddle::Function.new(LIBRARY[name], types, Fiddle::TYPE_INT)
    POINTER = Fiddle::TYPE_VOIDP
    #{SIGNALS}
  RUBY

  # What it says, and the rows of its recordings (or what the block makes of each), without shortcuts and with.
  def both_ways(source)
    [OFF, {}].map do |env|
      FileUtils.rm_rf(Dir[file("{*.pit,made*,link,t}")])
      said = run_program(ruby(source), env: env, options: gem_options("fiddle"))
      parts = Dir[file("*.pit")].sort_by { |name| [name.size, name] }.flat_map { |name| Pitwall::Record.read(name).segments }
      [said, parts.map { |part| block_given? ? yield(part) : rows(part) }]
    end
  end

  # Of each call all but its time; descriptors' numbers are the same in both.
  def rows(part)
    found = []
    part.each_syscall { |call| found << [call.name, call.path, call.path2, call.result, call.errno, call.flags, call.cwd, frames(part, call.node)] }
    assert_equal 0, part.syscall_facts.lost
    assert_equal part.syscall_totals.values.sum(&:first), found.size
    found
  end

  def paths(rows) = rows.map { |row| row[1] }.tally

  def frames(part, node)
    found = []
    while node.positive?
      found << "#{part.frame(node).name.gsub(/0x\h+/, "0x")}:#{part.lines[node]}"
      node = part.parents[node]
    end
    found
  end

  # A sanitizer's functions stay before the C library's.
  def skip_under_a_sanitizer
    skip "needs: no sanitizer, whose functions are called instead" if ENV["TEST_PRELOAD"]
  end

  def test_frequent_calls_need_no_signal
    skip_under_a_sanitizer
    run = <<~RUBY
      #{SIGNALS}
      #{START}
      File.write("t", "text")
      puts signals { 500.times { File.exist?("nope"); File.lstat("/"); File.read("t") } }
      stop
    RUBY
    fast, slow = [{}, OFF].map { |env| run_program(run, env: env).to_i }
    calls = segment.syscall_totals.values.sum(&:first)
    assert_operator calls, :>=, 2500
    assert_operator slow, :>=, 2500
    assert_operator fast, :<, 600, "at most one call a turn may be one that the C library makes for itself"
  end

  def test_results_and_errors_and_the_log
    skip_under_a_sanitizer
    %w[lazy now].each do |binding|
      library(binding: binding)
      (slow, slow_parts), (fast, fast_parts) = both_ways(<<~'RUBY')
        answers = Fiddle::Pointer.malloc(1 << 16)
        START
        made = signals { [1].each { c("results", POINTER).call(answers) } }
        STOP
        puts answers.to_s
        $stderr.reopen(File::NULL)
        File.write("t", made.to_s)
      RUBY
      assert_equal slow.lines, fast.lines
      assert_operator slow.lines.size, :>, 50
      assert_equal slow_parts, fast_parts
      assert_operator Integer(File.read(file("t"))), :<, 10, "an extension's calls took the shortcut"
    end
  end

  def test_programs_with_forked_children_have_the_same_log
    library
    (slow, slow_parts), (fast, fast_parts) = both_ways(<<~'RUBY')
      require "tmpdir"; require "fileutils"; require "json"
      START
      def deep(n) = n.zero? ? yield : [1].each { deep(n - 1) { yield } }
      deep(20) { File.exist?("nope"); File.realpath("."); Dir.children("/usr").size }
      Dir.mkdir("t"); Dir.chdir("t") { File.write("a", "b"); File.symlink("a", "l"); File.realpath("l"); File.readlink("l"); File.stat("a"); IO.readlines("a") }
      FileUtils.rm_r("t")
      require "set"; require "erb"
      p (File.open("nope/none") rescue $!.class), (IO.for_fd(999) rescue $!.class)
      Process.wait(fork { [1].each { File.stat("/usr") } })
      system("true"); `true`
      Thread.new { File.stat("/usr") }.join
      STOP
    RUBY
    assert_equal slow, fast
    assert_equal slow_parts, fast_parts
  end

  # Those of a child are not seen before it runs Ruby, even if it has its parent's memory.
  def test_children_in_the_same_memory
    library
    (_, slow), (said, fast) = both_ways("START\np c('children').call\n100.times { File.stat('/usr') }\nSTOP\n")
    assert_equal 35, said.to_i
    [slow, fast].each do |parts|
      looks = paths(parts.first)
      assert_equal [5, 5], looks.values_at("/after/vfork", "/after/fork")
      refute_includes looks.keys, "/in/vfork"
      refute_includes looks.keys, "/in/fork"
    end
  end

  def test_signals_and_processes_in_the_middle
    library
    both_ways("START\nhandled = [1].sum { c('disturbed', Fiddle::TYPE_INT).call(20_000) }\nSTOP\np handled").each do |said, parts|
      looks = paths(parts.first)
      assert_operator looks["/outside/handler"], :>=, 20_000
      assert_operator said.to_i, :>=, 20
      assert_equal said.to_i, looks["/in/handler"]
      refute_includes looks.keys, "/in/vfork"
      assert_empty parts.first.select { |row| row[1].end_with?("/handler") && row.last.empty? }.first(3)
    end
  end

  def test_libraries_that_come_and_go
    library
    library("#include <sys/stat.h>\nstatic struct stat s;\nint look(const char *path) { return stat(path, &s); }\n", name: "other", binding: "now")
    (_, slow), (_, fast) = both_ways(<<~'RUBY')
      other = Fiddle.dlopen(File.expand_path("other.so"))
      look = ->(library, path) { Fiddle::Function.new(library["look"], [POINTER], Fiddle::TYPE_INT).call(path) }
      look.(other, "/before")
      START
      look.(other, "/during")
      other.close
      other = Fiddle.dlopen(File.expand_path("other.so"))
      look.(other, "/loaded/since")
      STOP
      look.(other, "/behind")
      START
      look.(other, "/again")
      STOP
    RUBY
    [slow, fast].each { |parts| assert_equal [{ "/again" => 1 }], parts.map { |part| paths(part).slice("/before", "/during", "/loaded/since", "/behind", "/again") } }
  end

  # What somebody has put before the C library's functions is called as ever.
  def test_what_is_preloaded_is_called
    library
    source = <<~C
      #define _GNU_SOURCE
      #include <dlfcn.h>
      #include <stdio.h>
      #include <sys/stat.h>
      static int count;
      int stat(const char *path, struct stat *s) { count++; return ((int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat"))(path, s); }
      int counted(void) { return count; }
    C
    preloaded = library(source, name: "before")
    [OFF, {}].each do |env|
      said = run_program(ruby(<<~'RUBY'), env: env.merge("LD_PRELOAD" => [ENV["TEST_PRELOAD"], preloaded].compact.join(" ")), options: gem_options("fiddle"))
        counted = Fiddle::Function.new(Fiddle.dlopen(nil)["counted"], [], Fiddle::TYPE_INT)
        START
        before = counted.call
        50.times { File.exist?("/counted") }
        50.times { c("look", POINTER).call("/counted") }
        p counted.call - before
        STOP
      RUBY
      assert_equal 100, said.to_i
      assert_equal 100, paths(rows(segment))["/counted"]
      File.delete(file("a.pit"))
    end
  end

  # By way of a signal it only is before glibc 2.41, which looks at where the thread waits.
  def test_a_thread_is_cancelled_where_it_waits
    library
    File.mkfifo(file("fifo"))
    result = attempt(ruby("START\nc('cancelled', POINTER).call('fifo')\n"), patience: 30, options: gem_options("fiddle"))
    assert_equal ["cancelled\n", 5], [result.out, result.status.exitstatus], result.err
  end

  # Neither the program nor the recording minds.
  def test_the_stack_ends_in_a_call
    skip_under_a_sanitizer
    library
    lasts = both_ways(<<~'RUBY') { |part| [].tap { |found| part.each_syscall { |call| found << call.path } }.count("/last") }
      def deeper = [1].each { File.exist?("/deep"); deeper }
      START
      2.times { begin deeper; rescue SystemStackError then puts $!.class end }
      Thread.new { begin deeper; rescue SystemStackError then puts $!.class end }.join
      File.exist?("/last")
      STOP
    RUBY
    assert_equal [["SystemStackError\n" * 3, [1]]] * 2, lasts
  end

  # Stop waits for calls at work, and for none that such an end has left.
  def test_the_stack_ends_in_c_code
    skip_under_a_sanitizer
    library
    both_ways(<<~'RUBY') { |part| part.syscall_facts.lost }.each { |found| assert_equal ["SystemStackError\n" * 3, [0]], found }
      DEEP = Fiddle::Function.new(LIBRARY["deep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
      def deep
        DEEP.call(0)
      rescue SystemStackError
        puts $!.class
      end
      START
      2.times { Thread.new { deep }.join }
      deep
      STOP
    RUBY
  end

  # A row may be left half-written: the program goes on, and what is missing is told.
  def test_handlers_that_jump_away
    library
    both_ways("START\np c('leaves', Fiddle::TYPE_INT).call(100)\nSTOP\n") do |part|
      rows = [].tap { |found| part.each_syscall { |call| found << call.name } }.size
      [part.syscall_totals.values.sum(&:first), rows, part.syscall_facts.lost]
    end.each do |said, ((calls, rows, lost))|
      assert_equal "100\n", said
      assert_operator rows, :>, 0
      assert_equal calls, rows + lost
    end
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require "pitwall"

# Signal mode: C code that waits while it has the GVL, in calls that a signal ends with EINTR whatever its handler asks for. It waits as it does alone.
class CWaitsTest < Minitest::Test
  include RecordedProgram

  def settings = { mode: "signal", interval_ns: 100_000 }

  def setup
    super
    Pitwall.load_native!
    skip "needs: functions stood in for, as on x86-64 and aarch64 Linux" unless /linux/.match?(RUBY_PLATFORM) && /x86_64|aarch64/.match?(RUBY_PLATFORM)
  end

  C = <<~'C'
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <poll.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/epoll.h>
    #include <sys/ipc.h>
    #include <sys/sem.h>
    #include <sys/select.h>
    #include <sys/wait.h>
    #include <threads.h>
    #include <time.h>
    #include <unistd.h>

    extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);

    static struct timespec after(clockid_t clock, int ms) {
        struct timespec t;
        clock_gettime(clock, &t);
        t.tv_nsec += (ms % 1000) * 1000000L, t.tv_sec += ms / 1000;
        if (t.tv_nsec >= 1000000000L) t.tv_nsec -= 1000000000L, t.tv_sec++;
        return t;
    }

    /* How long it waited, in ms; below 0: -errno. `due`: the errno that says that the time was over. */
    #define WAIT(name, call, due) \
        int wait_##name(int ms) { \
            struct timespec for_ms = {ms / 1000, ms % 1000 * 1000000L}, from, to; \
            struct timeval for_us = {ms / 1000, ms % 1000 * 1000L}; \
            sigset_t none, all; sigemptyset(&none); sigfillset(&all); \
            (void)for_ms; (void)for_us; (void)none; (void)all; \
            errno = 0; \
            clock_gettime(CLOCK_MONOTONIC, &from); \
            long result = (long)(call); \
            clock_gettime(CLOCK_MONOTONIC, &to); \
            if (result != 0 && errno != due) return -errno; \
            return (int)((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec + 500000) / 1000000); \
        }
    static int epoll(void) { static int fd; return fd ? fd : (fd = epoll_create1(EPOLL_CLOEXEC)); }
    static sem_t *taken(void) { static sem_t s; return &s; }
    static struct epoll_event event;
    static struct pollfd fds[1];
    static volatile nfds_t no_fds;
    static int semaphores(void) { return semget(IPC_PRIVATE, 1, 0600); }
    static long removed(int id, long result) { int error = errno; semctl(id, 0, IPC_RMID); errno = error; return result; }
    static struct sembuf take = {0, -1, 0};
    static int id;

    WAIT(poll, poll(NULL, 0, ms), 0)
    WAIT(__poll_chk, __poll_chk(fds, no_fds, ms, sizeof fds), 0)
    WAIT(ppoll, ppoll(NULL, 0, &for_ms, &none), 0)
    WAIT(select, select(0, NULL, NULL, NULL, &for_us), 0)
    WAIT(pselect, pselect(0, NULL, NULL, NULL, &for_ms, &none), 0)
    WAIT(epoll_wait, epoll_wait(epoll(), &event, 1, ms), 0)
    WAIT(epoll_pwait, epoll_pwait(epoll(), &event, 1, ms, &none), 0)
    WAIT(nanosleep, nanosleep(&for_ms, NULL), 0)
    WAIT(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &for_ms, NULL) ? (errno = EINTR) : 0, 0)
    WAIT(usleep, usleep(ms * 1000), 0)
    WAIT(sleep, sleep((ms + 999) / 1000), 0)
    WAIT(sem_timedwait, (for_ms = after(CLOCK_REALTIME, ms), sem_timedwait(taken(), &for_ms)), ETIMEDOUT)
    WAIT(thrd_sleep, thrd_sleep(&for_ms, NULL) ? (errno = EINTR) : 0, 0)
    WAIT(semtimedop, (id = semaphores(), removed(id, semtimedop(id, &take, 1, &for_ms))), EAGAIN)
    WAIT(sigtimedwait, sigtimedwait(&all, NULL, &for_ms), EAGAIN)

    /* A handler without SA_RESTART, which another thread has run in this one. */
    static volatile int handled;
    static pthread_t waiting;
    static void handle(int signo) { handled++; }
    static void *interrupt(void *unused) { usleep(100000); pthread_kill(waiting, SIGUSR1); return NULL; }
    int interrupted(int ms) {
        struct sigaction a = {.sa_handler = handle}, before;
        pthread_t other;
        sigset_t every, mask;
        waiting = pthread_self();
        sigaction(SIGUSR1, &a, &before);
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &mask); /* the other thread's: no signal of the process */
        pthread_create(&other, NULL, interrupt, NULL);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        int result = wait_poll(ms);
        pthread_join(other, NULL);
        sigaction(SIGUSR1, &before, NULL);
        return result == -EINTR && handled == 1;
    }

    /* A child that is forked by a handler, and goes on where its parent waits. */
    static void make_child(int signo) { if (fork() == 0) { sigset_t now; pthread_sigmask(SIG_BLOCK, NULL, &now); _exit(sigismember(&now, SIGURG)); } }
    int forked(int ms) {
        struct sigaction a = {.sa_handler = make_child}, before;
        pthread_t other;
        int status = -1;
        waiting = pthread_self();
        sigaction(SIGUSR1, &a, &before);
        pthread_create(&other, NULL, interrupt, NULL);
        int result = wait_poll(ms);
        pthread_join(other, NULL);
        wait(&status);
        sigaction(SIGUSR1, &before, NULL);
        return result == -EINTR ? status : -1;
    }

    int is_blocked(void) { sigset_t now; pthread_sigmask(SIG_BLOCK, NULL, &now); return sigismember(&now, SIGURG); }
    void *address(void) { return (void *)poll; }
    /* Searched behind this library, so not found; from most others it would be. */
    int next_is_found(void) { return dlsym(RTLD_NEXT, "rb_ary_new") != NULL; }
    int next_poll_is_found(void) { return dlsym(RTLD_NEXT, "poll") != NULL; }

    static int at_init;
    int waited_at_init(void) { return at_init; }
    void Init_waits(void) { at_init = wait_poll(100); }
  C

  WAITS = C.scan(/^WAIT\((\w+)/).flatten.freeze

  def library(binding: "now")
    skip "peer absent: a C compiler" unless system("command -v cc > /dev/null")
    File.write(file("waits.c"), C)
    assert system("cc", "-O1", "-shared", "-fPIC", "-fplt", "-w", "-Wl,-z,#{binding}", "-Wl,-z,relro", "-o", file("waits.so"), file("waits.c"), "-lpthread", "-ldl", "-lrt")
  end

  HELPERS = <<~'RUBY'
    require "fiddle"
    def library = Fiddle.dlopen(File.expand_path("waits.so"))
    def c(name, *types, returns: Fiddle::TYPE_INT) = Fiddle::Function.new(library[name], types, returns, need_gvl: true)
    def waits(name, ms = 200) = c(name, Fiddle::TYPE_INT).call(ms)
  RUBY

  def run_with_library(source, **options)
    run_program(HELPERS + source, options: gem_options("fiddle"), **options)
  end

  # Loaded while it is recorded, its addresses looked up at once or when they are first needed.
  def test_each_call_waits_as_long_as_alone
    %w[now lazy].each do |binding|
      library(binding: binding)
      out = run_with_library("record { #{WAITS.inspect}.each { |name| puts [name, waits(\"wait_\#{name}\")].join(' ') } }")
      waited = out.lines.to_h { |line| line.split.then { |name, ms| [name, ms.to_i] } }
      assert_equal WAITS, waited.keys
      assert_empty waited.select { |_, ms| ms < 199 }, "of 200 ms, or -errno"
    end
  end

  def test_a_library_that_ruby_loads
    library
    assert_operator run_with_library("record { require './waits.so' }\np c('waited_at_init').call").to_i, :>=, 99
  end

  # By name, as FFI does.
  def test_functions_that_are_looked_up
    out = run_program(<<~'RUBY', options: gem_options("fiddle"))
      require "fiddle"
      record do
        [Fiddle.dlopen(nil)["usleep"], Fiddle::Handle::DEFAULT["usleep"], Fiddle::Handle["usleep"]].each do |usleep|
          from = now
          p Fiddle::Function.new(usleep, [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true).call(100_000)
          p now - from >= 0.1
        end
      end
    RUBY
    assert_equal "0\ntrue\n" * 3, out
  end

  # Between its beginning and its end, ticks that come in a wait are charged to it, and no CPU time is.
  def test_the_wait_is_recorded_where_it_was
    library
    run_with_library(<<~'RUBY')
      def waits_in_c = waits("wait_poll", 300)
      def works = burn(0.1)
      record { 2.times { waits_in_c; works } }
    RUBY
    rows = methods_of(segment)
    assert_operator rows.fetch("Object#waits_in_c").total, :>=, 590_000_000
    assert_operator methods_of(segment, :cpu).fetch("Object#works").total, :>=, 150_000_000
    assert_operator methods_of(segment, :cpu).fetch("Object#waits_in_c").total, :<, 100_000_000
    assert_sane segment
  end

  # Nothing comes after the wait: its stack is read from outside. (Names need the GVL, and so come before.)
  def test_a_process_that_is_killed_while_it_waits
    library
    source = <<~RUBY
      #{HELPERS}
      WAIT = c("wait_poll", Fiddle::TYPE_INT)
      def waits_long(ms) = WAIT.call(ms)
      start
      waits_long(20)
      flushed
      Process.detach(spawn("sleep 1.5; kill -9 \#{Process.pid}"))
      waits_long(60_000)
    RUBY
    assert_equal 9, attempt(source, options: gem_options("fiddle")).status.termsig
    killed = Pitwall::Record.read(file("a.pit"), salvage: true).segments.first
    assert_operator methods_of(killed).fetch("Object#waits_long").total, :>, 45_000_000
  end

  def test_a_signal_of_the_program_interrupts
    library
    assert_equal "1\n", run_with_library("record { p waits('interrupted', 60_000) }")
  end

  def test_a_child_that_is_forked_in_a_wait
    library
    assert_equal "0\n0\n", run_with_library("record { p waits('forked', 60_000); p c('is_blocked').call }")
  end

  def test_forked_children_wait_as_well
    library
    out = run_with_library(<<~'RUBY')
      record do
        Process.wait(fork { p waits("wait_poll") >= 199 })
        Process.wait(fork { stop; p waits("wait_poll") >= 199 })
        p waits("wait_poll") >= 199
      end
    RUBY
    assert_equal "true\n" * 3, out
  end

  def test_the_c_librarys_functions_come_back
    library
    out = run_with_library(<<~'RUBY')
      get = c("address", returns: Fiddle::TYPE_LONG)
      at = [get.call]
      3.times do
        start
        at << get.call
        p waits("wait_poll", 50) >= 49
        stop
        at << get.call
      end
      p at.values_at(0, 2, 4, 6).uniq.size, at.values_at(1, 3, 5).uniq.size, at.uniq.size
      p waits("wait_poll", 50) >= 49
    RUBY
    assert_equal "#{"true\n" * 3}1\n1\n2\ntrue\n", out
  end

  # What RTLD_NEXT means depends on who asks.
  def test_who_looks_up_is_known
    library
    out = run_with_library(<<~'RUBY')
      found = -> { %w[next_is_found next_poll_is_found].map { |name| c(name).call } }
      before = found.call
      record { p found.call == before }
      p before
    RUBY
    assert_equal "true", out.lines.first.chomp, out
  end

  # Those without the GVL, those that end in a wait, and collections beside.
  def test_threads_and_collections
    library
    out = run_with_library(<<~'RUBY')
      record do
        poll, free = c("wait_poll", Fiddle::TYPE_INT), Fiddle::Function.new(library["wait_poll"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
        threads = Array.new(4) { |i| Thread.new { Array.new(5) { [i.even? ? poll : free].first.call(20) }.min } }
        GC.stress = true
        3.times { Array.new(3) { "x" * 100 } }
        GC.stress = false
        p threads.map(&:value).min >= 19
        20.times { Thread.new { poll.call(2) } }
        Thread.new { poll.call(50) }.then { |thread| Thread.pass; thread.kill.join }
        burn(0.1)
        p c("is_blocked").call
      end
    RUBY
    assert_equal "true\n0\n", out
    assert_sane segment
  end

  def test_exec_from_a_recorded_program
    library
    source = "#{HELPERS}start\np waits('wait_poll', 100) >= 99\nexec('grep', 'SigBlk', '/proc/self/status')\n"
    result = attempt(source, options: gem_options("fiddle"))
    assert_equal ["true", "0"], result.out.lines.map { |line| line.split.last.delete_prefix("0" * 15) }, result.err
  end
end

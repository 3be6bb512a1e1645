# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/fastboot/folder"
require "pitwall/fastboot/last_boot"
require_relative "../support/command_line"
require_relative "../support/native_extension"

# Garbage collection rests while files are loaded, and never longer than memory allows.
class GCRestTest < Minitest::Test
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")

  RESTS = RUBY_VERSION.to_f >= 3.4
  ELSEWHERE = %w[test_older_rubies_have_no_rest].freeze

  def self.runnable_methods = RESTS ? super - ELSEWHERE : ELSEWHERE

  def setup
    super
    write_files("a.rb" => "A = 1 unless defined?(A)")
  end

  def test_older_rubies_have_no_rest
    program = "load './a.rb'; p #{STATS}['gc_rests'], #{STATS}['reasons'].grep(/garbage/), GC.disable"
    assert_equal %w[nil [] false], lines(program)
  end

  # @return the lines that the program prints
  def lines(program, env: {})
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache"), **env }, RUBY, "-I#{LIB}", "-rpitwall/fastboot",
                     "-e", program)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err
    result.out.lines(chomp: true)
  end

  COLLECTS = "collects = -> { before = GC.count; 40_000_000.times { Object.new; break if GC.count > before }; " \
             "GC.count > before }"
  STATS = "Pitwall::Fastboot.stats"

  def test_it_ends_when_no_file_is_loaded
    assert_equal %w[true 1 true], lines("#{COLLECTS}; p collects.call, #{STATS}['gc_rests'], collects.call")
  end

  def test_it_begins_again_with_the_next_file
    again = "load './a.rb'; p #{STATS}['gc_rests'], collects.call"
    assert_equal %w[true 2 true], lines("#{COLLECTS}; p collects.call; #{again}")
  end

  def test_it_ends_when_memory_has_grown
    program = "before = GC.count; 4000.times { load './a.rb'; 'x' * 100_000 }; p GC.count > before"
    assert_equal %w[true true], lines("#{program}, #{STATS}['gc_growths'] > 0")
  end

  # To enlarge the table of descriptors of a process with threads takes Linux some milliseconds.
  def test_its_descriptor_leaves_the_lowest_numbers_and_the_table_of_descriptors_alone
    program = "puts File.read('/proc/self/status')[/^FDSize:\\s*(\\d+)/, 1], File.open('a.rb').fileno"
    with, without = [{}, { "PITWALL_FASTBOOT" => "off" }].map { |env| lines(program, env: env) }
    assert_equal without, with
  end

  GROWS = "KEPT = []; growths = -> { #{STATS}['gc_growths'].to_i }; " \
          "150.times { load './a.rb'; KEPT << 'x' * 1_000_000 }; " \
          "200.times { growths.call.zero? and sleep 0.01 }; p growths.call"
  GROWS_LESS = GROWS.sub("150", "50")

  # While collections are disabled, Ruby raises NoMemoryError without a collection before it.
  def test_it_ends_where_the_program_limits_its_memory
    size = "File.read('/proc/self/statm').split.first.to_i * 4096"
    program = "load './a.rb'; Process.setrlimit(:AS, #{size} + (12 << 20)); 200.times { 'x' * 1_000_000 }; p GC.disable"
    assert_equal ["false"], lines(program)
    other = "before = GC.count; Process.setrlimit(:NOFILE, 100); 300_000.times { Object.new }; p GC.count == before"
    assert_equal ["true"], lines("load './a.rb'; #{other}"), "no limit of memory"
  end

  # One library prepends modules before, another one keeps a method under another name.
  OTHERS = <<~'RUBY'
    called = []
    { GC => [:enable], Process => %i[_fork setrlimit] }.each do |owner, names|
      wrapped = Module.new { names.each { |name| define_method(name) { |*a| called << name; super(*a) } } }
      owner.singleton_class.prepend(wrapped)
    end
    require "pitwall/fastboot"
    load "./a.rb"
    class << Process
      alias_method :daemon_before, :daemon
      def daemon(*a) = daemon_before(*a)
    end
    Process.setrlimit(:NOFILE, 100)
    GC.enable
    reader, writer = IO.pipe # its end is the daemon's
    fork { Process.daemon(true, true); writer.puts(called.inspect) }
    writer.close
    Process.wait
    puts reader.read
  RUBY

  def test_methods_that_others_replace_too
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-e", OTHERS)
    assert_equal ["[:setrlimit, :enable, :_fork]\n", ""], [result.out, result.err]
  end

  # It disables collections, holds objects that Ruby can't see, and calls Ruby code.
  WITHOUT_COLLECTIONS = <<~C
    #include <ruby.h>
    static VALUE without_collections(VALUE self)
    {
        VALUE was = rb_gc_disable(), *texts = malloc(1000 * sizeof *texts);
        int gone = 0;
        for (int i = 0; i < 1000; i++) texts[i] = rb_str_new(NULL, 100 + i % 7);
        rb_yield(Qnil);
        for (int i = 0; i < 1000; i++) gone += !RB_TYPE_P(texts[i], T_STRING) || RSTRING_LEN(texts[i]) != 100 + i % 7;
        free(texts);
        if (!RTEST(was)) rb_gc_enable();
        return INT2FIX(gone);
    }
    void Init_own(void) { rb_define_global_function("without_collections", without_collections, 0); }
  C

  def test_an_extension_disables_collections_too
    skip "peer absent: a C compiler (apt-get install gcc libc6-dev)" unless NativeExtension.compiler?

    write_files("own.c" => WITHOUT_COLLECTIONS)
    NativeExtension.compile(file("own.c"), file("own.so"))
    wait = "100.times { sleep 0.01; 2000.times { 'y' * 200 } }" # the rest would end after 0.5 s
    program = "#{COLLECTS}; load './a.rb'; p without_collections { #{wait} }, collects.call"
    assert_equal %w[0 true], lines("require './own.so'; #{program}")
  end

  # A boot writes down how much memory it took. If that is much, the limit of the next boot is higher.
  def test_what_the_last_boots_took
    assert_equal ["1"], lines(GROWS)
    assert_operator noted.min, :>, 72
    [["400", "0"], ["60", "1"], ["-1", "1"], ["much", "1"], [(10**9).to_s, "0"],
     [(10**30).to_s, "1"]].each do |expected, growths|
      note(expected)
      assert_equal [growths], lines(GROWS), expected
    end
    note(2000)
    assert_equal ["0"], lines(GROWS)
    peak, expected = noted
    assert_equal [true, 1800], [peak.between?(1, 1799), expected], "a smaller boot does not make it forget at once"
    lines("1", env: { "PITWALL_FASTBOOT_GC" => "off" })
    assert_equal 1620, noted.last
    note(2000, "another program")
    assert_equal ["1"], lines(GROWS)
    note(2000)
    assert_equal ["0"], lines("$0 = 'a server: worker 0'; #{GROWS}")
    assert_equal "-e", Pitwall::Fastboot::LastBoot.read(file("cache"))["command"], "its name when it began"
    File.unlink(file("cache/last-boot"))
    assert_equal ["1"], lines(GROWS)
  end

  # A boot that will collect does so early: there is less to mark. This one grows by 50 MB.
  def test_early_collections
    assert_equal ["0"], lines(GROWS_LESS)
    [[80, 100, "1"], [80, 80, "0"], [50, 60, "0"], [200, 220, "0"]].each do |expected, uncollected, growths|
      note(expected, uncollected: uncollected)
      assert_equal [growths], lines(GROWS_LESS), [expected, uncollected]
    end
    note(80, uncollected: 100)
    lines("1", env: { "PITWALL_FASTBOOT_GC" => "off" })
    assert_equal ["1"], lines(GROWS_LESS), "a boot without rests between them tells nothing of collections"
  end

  # The early collection is the only one. What it frees is taken into account when the next boot begins.
  def test_boots_that_are_alike_collect_once
    program = "KEPT = []; 190.times { load './a.rb'; KEPT << Array.new(5000) { +'kept' }; " \
              "Array.new(2700) { +'garbage' }; sleep 0.003 }; s = #{STATS}; p s['gc_growths'].to_i"
    assert_includes [["1"], ["0"]], 4.times.map { lines(program) }.last
  end

  def test_the_name_of_a_boot
    File.write(file("bundle"), "load '#{file("a.rb")}'; $0 = ARGV.last")
    capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-rpitwall/fastboot", file("bundle"),
            "exec", "rails\n", "server")
    command = Pitwall::Fastboot::LastBoot.read(file("cache"))["command"]
    assert_equal "#{file("bundle")} exec rails ", command
  end

  def note(expected, command = "-e", uncollected: expected.to_i + 1)
    File.write(file("cache/last-boot"), <<~TEXT)
      command=#{command}
      gc_expected=#{expected}
      gc_uncollected=#{uncollected}
    TEXT
  end

  def noted = Pitwall::Fastboot::LastBoot.read(file("cache")).values_at("gc_peak", "gc_expected")

  # A collection frees memory, but the system does not get the memory back. If rests went on, each limit would be higher
  # than the one before.
  def test_a_program_that_makes_garbage_while_it_loads_files
    program = "600.times { load './a.rb'; Array.new(4000) { 'x' * 100 } }; s = #{STATS}; "
    program += "p s['gc_growths'], s['gc_peak'] < 250, s['gc_uncollected'] > s['gc_peak']"
    assert_equal %w[1 true true], lines(program)
  end

  # Only the main Ractor can end a rest. Here the main Ractor waits for another Ractor.
  def test_other_ractors_collect
    program = "Warning[:experimental] = false; class Mine < Ractor; end; " \
              "made = Mine.new(2, name: 'mine') { |n| before = GC.count; " \
              "40_000_000.times { Object.new; break if GC.count > before }; [n, GC.count > before] }; " \
              "p made.class, made.name, made.respond_to?(:value) ? made.value : made.take; load './a.rb'; p GC.disable"
    assert_equal ["Mine", '"mine"', "[2, true]", "false"], lines(program)
  end

  # Ruby writes to an object when the object gets old. If the boot's objects got old in each child, the children would
  # share little memory.
  def test_children_get_old_objects
    program = "KEPT = Array.new(300_000) { 'x' * 9 }; " \
              "old = -> { GC.stat(:old_objects).fdiv(GC.stat(:heap_live_slots)).round(1) }; p old.call < 0.5; "
    assert_equal %w[true true true], lines("#{program} fork { p old.call >= 0.7 }; Process.wait; p $?.success?")
    own = "GC.disable; before = GC.count; fork { p GC.count == before }; Process.wait; p $?.success?"
    assert_equal %w[true true true], lines("#{program} #{own}"), "the program sees to it itself"
  end

  # As without it: the first GC.disable finds collections enabled.
  def test_the_program_disables_collections_itself
    program = "p GC.disable, GC.disable, GC.enable, GC.enable; load './a.rb'; p GC.disable; load './a.rb'; " \
              "sleep 0.5; load './a.rb'; p GC.enable"
    assert_equal %w[false true true false false true], lines(program)
    assert_equal %w[true false], lines("GC.stress = true; x = GC.stress; GC.stress = false; p x, GC.disable")
  end

  def test_an_alias_of_the_replaced_method
    program = "class << GC; alias_method :old, :enable; def enable = old; end; p GC.enable, GC.disable, GC.enable"
    assert_equal %w[false false true], lines(program)
    program = "class << Warning; alias_method :old, :[]=; define_method(:[]=) { |a, b| old(a, b) }; end; " \
              "Warning[:deprecated] = true; p Warning[:deprecated]"
    assert_equal %w[true], lines(program)
  end

  # The main thread sleeps all the time: what the watching thread asks for must reach the other one, also when the boot
  # has been over for long.
  def test_it_ends_in_any_thread
    sleepers = [0.5, 5.7].map { |seconds| "Thread.new { sleep #{seconds}; p collects.call }.join" }
    sleepers.each { |sleeper| assert_equal %w[true], lines("#{COLLECTS}; #{sleeper}") }
  end

  # Ruby has ended, but the process has not: C's handlers run.
  def test_it_ends_with_ruby
    program = "require 'fiddle'; c = Fiddle.dlopen(nil); pointer = Fiddle::TYPE_VOIDP; " \
              "Fiddle::Function.new(c['on_exit'], [pointer, pointer], Fiddle::TYPE_INT).call(c['sleep'], nil); " \
              "load './a.rb'; exit 1"
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-rpitwall/fastboot", "-e", program)
    skip "no fiddle" if result.err.include?("cannot load such file -- fiddle")
    assert_equal [1, ""], [result.status.exitstatus, result.err]
  end

  def test_children_collect
    program = "#{COLLECTS}; fork { p collects.call, #{STATS}['gc_rests'] }; Process.wait; p $?.success?"
    assert_equal %w[true 1 true], lines(program)
  end

  def test_where_it_does_not_begin
    reason = "p #{STATS}['reasons'].grep(/garbage/), #{STATS}['gc_rests'], GC.disable"
    assert_equal ["[]", "nil", "false"], lines(reason, env: { "PITWALL_FASTBOOT_GC" => "off" })
    File.write(file("disable.rb"), "GC.disable")
    out = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-r./disable", "-rpitwall/fastboot",
                  "-e", reason).out.lines(chomp: true)
    assert_equal ['["garbage collection does not rest: GC is disabled"]', "nil", "true"], out
    limited = "Process.setrlimit(:AS, 4 << 30); require 'pitwall/fastboot'; #{reason}"
    out = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-e", limited).out.lines(chomp: true)
    assert_equal ['["garbage collection does not rest: memory is limited (ulimit)"]', "nil", "false"], out
  end
end

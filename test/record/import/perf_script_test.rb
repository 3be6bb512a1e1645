# frozen_string_literal: true

require_relative "../../test_helper"
require "timeout"
require_relative "../../support/command_line"
require_relative "../../support/imported"
require "pitwall/launch/perf"
require "pitwall/record/import/source"

# The parser of `perf script`'s text, against real outputs of one recording with different fields.
class RecordImportPerfScriptTest < Minitest::Test
  include Imported
  include CommandLine

  Samples = Import.const_get(:PerfScript).const_get(:Samples)
  Source = Import.const_get(:Source)
  FIXTURES = File.expand_path("../../fixtures/real/perf", __dir__)
  RUBY = Pitwall::Record::Frame::RUBY
  NATIVE = Pitwall::Record::Frame::NATIVE
  SHOP = "/srv/shop app/bin/shop"
  LAMBDA = "std::_Function_handler<long (shop::Order const&), work()::{lambda(shop::Order const&)#1}>::_M_invoke"

  def parse(text)
    parser = Samples.new(Source.new(StringIO.new(text), "x", max_bytes: 1))
    samples = []
    parser.each { |sample| samples << sample }
    [samples, parser]
  end

  def fixture(name) = parse(File.binread("#{FIXTURES}/#{name}.txt"))
  def samples(name) = fixture(name).first
  def one(text) = parse(text).first.fetch(0)

  # The frame of one line, as [name, path, line, kind].
  def frame(line) = one("ruby 7 1.000000: 5 task-clock:\n\t#{line}\n\n").stack.fetch(0).to_a

  def names(samples) = samples.map { |sample| sample.stack.map(&:name) }
  def stacks_of(name) = names(samples(name))

  def test_every_field_of_the_default_form
    sample = samples("default").find { |each| each.comm.start_with?("worker") }
    assert_equal ["worker 3 (bg)", nil, 13_251, 8_797_320_317_000, 5_025_125, "task-clock"], sample.to_a.first(6)
    assert_equal [["shop::price", SHOP, 0, NATIVE], ["shop::Order::total", SHOP, 0, NATIVE], [LAMBDA, SHOP, 0, NATIVE]],
                 sample.stack.first(3).map(&:to_a)
    assert_equal ["[unknown]", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", 0, NATIVE], sample.stack.last.to_a
  end

  def test_other_fields_say_less_and_the_same
    given = { "pid" => %i[comm tid time_ns period event], "no-comm" => %i[tid time_ns period event],
              "no-event" => %i[comm tid time_ns], "no-times" => %i[comm tid event], "comm-only" => %i[comm],
              "srcline" => %i[comm tid time_ns period event], "frames-only" => [] }
    whole = samples("default")
    given.each do |name, fields|
      samples, parser = fixture(name)
      assert_equal 0, parser.unreadable, "#{name}: #{parser.first_unreadable}"
      refute_predicate parser, :cut?, name
      assert_equal whole.map { |sample| fields.map { |field| sample[field] } },
                   samples.map { |sample| fields.map { |field| sample[field] } }, name
      assert_equal names(whole), names(samples), name
    end
  end

  def test_fields_that_a_file_lacks_are_nil
    assert_equal [nil, nil, nil], samples("comm-only").first.to_a[1, 3]
    assert_equal ["", nil, nil, nil, nil, nil], samples("frames-only").first.to_a.first(6)
    assert_nil samples("no-event").first.event
    assert_nil samples("no-times").first.period
  end

  def test_times_may_have_nine_decimals
    assert_equal [8_797_315_270_507, 13_249, 13_249], samples("ns").first.then { |s| [s.time_ns, s.pid, s.tid] }
  end

  def test_the_cpu_and_the_mode_are_skipped
    assert_equal [["ruby", 14_581, 8_834_553_541_000, 3_344_481, "cpu-clock"]],
                 samples("cpu").first(1).map { |s| [s.comm, s.tid, s.time_ns, s.period, s.event] }
    assert_equal ["ruby", 7027, 8_187_619_485_000], samples("misc").first.then { |s| [s.comm, s.tid, s.time_ns] }
  end

  def test_kernel_frames_have_the_object_kernel
    kernel = samples("cpu").first.stack.select { |each| each.path == "[kernel]" }
    assert_equal "clear_page_erms", kernel.first.name
    assert_includes kernel.map(&:name), "asm_exc_page_fault"
  end

  def test_events_of_processes_are_no_samples_and_name_the_process
    samples, parser = fixture("task-events")
    assert_equal 0, parser.unreadable
    assert_equal [[13_249, 13_249], [13_249, 13_251]], samples.map { |s| [s.pid, s.tid] }.uniq.sort
    assert_equal %w[page-faults task-clock], samples.map(&:event).uniq.sort
  end

  def test_without_a_call_graph_the_frame_stands_on_the_line
    whole, leaves = stacks_of("default"), stacks_of("no-call-graph")
    assert_equal whole.map { |stack| stack.first(1) }, leaves
  end

  def test_a_file_that_is_cut_loses_its_last_sample
    samples, parser = fixture("cut")
    assert_predicate parser, :cut?
    assert_equal stacks_of("default").first(6), names(samples)
  end

  def test_methods_of_a_jit_map_are_ruby_frames
    ours = samples("zjit").flat_map(&:stack).select { |each| each.kind == RUBY }.uniq.map(&:to_a)
    assert_includes ours, ["block in total", "/srv/shop/load.rb", 2, RUBY]
    assert_includes samples("zjit").flat_map(&:stack).map(&:to_a), ["zjit::ZJIT entry trampoline", "[JIT]", 0, NATIVE]
    assert_equal ["times", "<internal:numeric>", 255, RUBY], samples("yjit").first.stack.first.to_a
  end

  def test_frames
    {
      "7f9 rb_ary_push+0x1d (/usr/lib/libruby-3.1.so.3.1.2)" => ["rb_ary_push", "/usr/lib/libruby-3.1.so.3.1.2"],
      "7f9 f(int (*)(char), T const&) const+0x1 (/srv/a b (deleted))" => ["f(int (*)(char), T const&) const", "/srv/a b"],
      "7f9 operator()(int) const (/srv/a)" => ["operator()(int) const", "/srv/a"],
      "7f9 f(int)" => ["f(int)", ""],
      "7f9 f (/srv/a)b/c.so)" => ["f", "/srv/a)b/c.so"],
      "7f9 [unknown] (/srv/a(1).so)" => ["[unknown]", "/srv/a(1).so"],
      "7f9 [unknown] ([unknown])" => ["[unknown]", ""],
      "7f9 __vdso_clock_gettime+0x2 ([vdso])" => ["__vdso_clock_gettime", "[vdso]"],
      "7f9 rb_f (/usr/lib/libruby.so.4.0+0x20d07)" => ["rb_f", "/usr/lib/libruby.so.4.0"],
      "ffffffffc0a ext4_read+0x1 ([ext4])" => ["ext4_read", "[kernel]"],
      "ffffffff8100 do_syscall_64+0x1 (/usr/lib/debug/boot/vmlinux-6.1.0-28-amd64)" => ["do_syscall_64", "[kernel]"],
      "ffffffffc0a x+0x1 (/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz)" => ["x", "[kernel]"],
      "ffffffff82100000 [unknown] ([unknown])" => ["[unknown]", "[kernel]"],
      "ffffffff82100000 do_idle+0x7" => ["do_idle", "[kernel]"],
      "7f9 [unknown] (/tmp/perf-4711.map)" => ["(compiled code)", ""],
      "7f9 [unknown] (//anon)" => ["(compiled code)", ""],
      "7f9 YJIT entry+0x1 ([JIT] tid 4711)" => ["YJIT entry", "[JIT]"],
      "7f9 bpf_prog_6deef7357e7b4530 ([bpf])" => ["bpf_prog_6deef7357e7b4530", "[kernel]"],
      "7f9" => ["0x7f9", ""]
    }.each { |line, expected| assert_equal [*expected, 0, NATIVE], frame(line), line }
    assert_equal ["Order#total", "/srv/order.rb", 8, RUBY], frame("7f9 Order#total (/srv/order.rb:8) (/tmp/perf-1.map)")
    assert_equal ["f (/srv/order.rb:8)", "/srv/x.so", 0, NATIVE], frame("7f9 f (/srv/order.rb:8) (/srv/x.so)")
  end

  def test_an_inlined_function_has_the_object_of_the_function_around_it
    sample = one(<<~TEXT)
      ruby 7 1.000000: 5 task-clock:
      \t7f9 inner+0x1 (inlined)
      \t7f9 outer+0x1 (/srv/a.so)
      \t8f9 alias+0x1 (inlined)
      \t9f9 main+0x1 (/srv/b)

    TEXT
    assert_equal [["inner", "/srv/a.so"], ["outer", "/srv/a.so"], ["alias", ""], ["main", "/srv/b"]],
                 sample.stack.map { |each| [each.name, each.path] }
  end

  def test_headers
    {
      "ruby 7 1.000000: 5 cycles:P: " => ["ruby", nil, 7, 1_000_000_000, 5, "cycles:P"],
      "puma srv tp 001 4711/4712 [003] 1.000000: 5 cpu_core/cycles/P: " =>
        ["puma srv tp 001", 4711, 4712, 1_000_000_000, 5, "cpu_core/cycles/P"],
      ":-1 -1/-1 1.000000: 5 cycles: " => [":-1", -1, -1, 1_000_000_000, 5, "cycles"],
      "a:b 1: 2.5 9 [000] 1.000000: sched:sched_switch: prev_comm=x next_pid=7" =>
        ["a:b 1: 2.5", nil, 9, 1_000_000_000, nil, "sched:sched_switch"],
      "swapper 0 [000] 1.000000: 5 raw 0x1c2: " => ["swapper", nil, 0, 1_000_000_000, 5, "raw 0x1c2"]
    }.each { |line, expected| assert_equal expected, one("#{line}\n\t7f9 f (/srv/a)\n\n").to_a.first(6), line }
  end

  def test_spaces_instead_of_tabs
    text = File.read("#{FIXTURES}/default.txt")
    assert_equal stacks_of("default"), names(parse(text.gsub("\t", "        ")).first)
  end

  def test_lines_break_in_other_ways
    text = File.read("#{FIXTURES}/default.txt")
    assert_equal stacks_of("default"), names(parse(text.gsub("\n", "\r\n")).first)
  end

  def test_a_sample_without_a_stack
    assert_equal [["[unknown]", "", 0, NATIVE]], one("ruby 7 1.000000: 5 cycles:\n\n").stack.map(&:to_a)
  end

  def test_lines_that_are_no_sample_are_counted
    samples, parser = parse("WARNING: something else\nruby 7 1.000000: 5 cycles:\n\tno frame\n\t7f9 f (/srv/a)\n\nthe end\n")
    assert_equal [1, 3, "WARNING: something else"], [samples.size, parser.unreadable, parser.first_unreadable]
  end

  def test_a_line_longer_than_the_limit_is_skipped
    samples, parser = parse("ruby 7 1.000000: 5 cycles:\n\t7f9 #{"x" * 200_000} (/srv/a)\n\t7f9 f (/srv/a)\n\n")
    assert_equal [["f"], 1], [samples.first.stack.map(&:name), parser.unreadable]
  end

  def test_every_form_is_recognised
    Dir["#{FIXTURES}/*.txt"].each do |file|
      assert_equal "perf-script", Import.format_of(file), file
    end
  end

  def test_texts_of_other_tools_are_not_taken_for_it
    ["main;Order#total 7\n", "open\t/etc/passwd\n", "12:00:01 read(3, \"\", 1) = 0\n", "a b 3\nc d 4\n", "\tone\n\ttwo\n",
     "7027 openat(AT_FDCWD, \"/etc\") = 3 <0.000012>\n"].each do |text|
      refute_equal "perf-script", Import.open("x", io: StringIO.new(text)).format, text
    rescue Pitwall::BadRecording
      next
    end
  end

  def test_processes_become_segments_and_threads_have_their_names
    recording = imported(real("perf/task-events.txt"), type: "task-clock")
    assert_equal [13_249], recording.segments.map { |segment| segment.header.pid }
    assert_equal [["shop app", 13_249], ["worker 3 (bg)", 13_251]],
                 recording.segments.first.threads.values.map { |thread| [thread.name, thread.native_id] }.sort
    two = real("perf/pid.txt") + real("perf/pid.txt").gsub("13249", "14000")
    assert_equal [13_249, 14_000], imported(two).segments.map { |segment| segment.header.pid }
  end

  def test_periods_of_clocks_are_times_and_samples_are_captures
    recording = imported(real("perf/cpu.txt"))
    periods = samples("cpu").sum(&:period)
    sums = recording.segments.first.tallies.flat_map { |tally| tally.cells.each_slice(3).to_a }.transpose.map(&:sum)
    assert_equal [periods, periods, 14], sums
    assert_equal ["perf saw threads on the CPU only: wall time is CPU time"], recording.segments.first.header.notes
  end

  def test_periods_of_other_events_are_captures
    recording = imported(real("perf/default.txt"), type: "page-faults")
    faults = samples("default").select { |sample| sample.event == "page-faults" }
    sums = stacks(recording, :captures)
    assert_equal faults.sum(&:period), sums.values.sum
    assert_equal 158, sums.find { |stack, _| stack.last == "_dl_new_object" }.last
    assert_equal ["captures are counts of page-faults"], recording.segments.first.header.notes
  end

  def test_of_several_events_the_first_is_taken_and_the_others_are_named
    profile = Import.open("#{FIXTURES}/default.txt")
    profile.write_to(StringIO.new("".b))
    assert_equal ["has 2 events: page-faults was taken, not task-clock (7)"], profile.warnings
    assert_match(/: has no event cycles: it has page-faults, task-clock\z/, refused(real("perf/default.txt"), type: "cycles"))
  end

  def test_an_event_is_named_without_its_modifiers
    assert_equal 1, imported("ruby 7 1.000000: 5 cycles:P:\n\t7f9 f (/srv/a)\n\n", type: "cycles").segments.size
  end

  def test_what_could_not_be_read_is_said
    text = "#{real("perf/cut.txt")}".sub("\n\n", "\n\nwhat?\n")
    profile = Import.open("x", io: StringIO.new(text))
    profile.write_to(StringIO.new("".b))
    assert_equal ["has 2 events: page-faults was taken, not task-clock (1)", "ends within a sample, which was left out",
                  'a line could not be read ("what?")'], profile.warnings
    profile = Import.open("#{FIXTURES}/frames-only.txt")
    profile.write_to(StringIO.new("".b))
    assert_equal ["says no periods: each sample counts the same"], profile.warnings
  end

  def test_a_text_without_samples_is_refused
    assert_match(/: holds no samples\z/, refused("# captured on: x\n", from: "perf-script"))
  end

  def test_perfs_own_file_without_perf
    File.binwrite(file("perf.data"), "PERFILE2\x68\0\0\0")
    result = pitwall("import", "perf.data", "--out", "x.pit", env: { "PATH" => file("."), "PITWALL_DEBUG" => nil })
    assert_equal [5, 1], [result.status.exitstatus, result.err.lines.size]
    assert_match(/run `perf script -i FILE >FILE.txt` where perf is installed/, result.err)
  end

  # Bytes are changed, lines lost and doubled: every mutation is read, and no sample is made up of nothing.
  def test_mutations_are_read
    texts = Dir["#{FIXTURES}/*.txt"].sort.map { |file| File.binread(file) }
    300.times do |seed|
      random = Random.new(seed)
      text = mutated(texts.sample(random: random), random)
      samples, parser = parse(text)
      frames = samples.sum { |sample| sample.stack.size }
      assert_operator frames, :<=, text.count("\n") + samples.size + 1, "seed #{seed}"
      assert(samples.all? { |sample| sample.stack.all? { |frame| frame.name.valid_encoding? && frame.path } }, "seed #{seed}")
      assert_operator parser.unreadable, :>=, 0
    end
  end

  # Patterns that could be tried in many ways.
  def test_hostile_lines_are_read_quickly
    ["a " * 30_000, "1 " * 30_000, "1/1 " * 15_000, "#{"9" * 60_000}:", "\t7f9 #{"(" * 60_000}", "\t7f9 #{") " * 30_000}",
     "\t7f9 #{"f (" * 20_000})", " #{"1.000000: " * 6000}", "\t#{"f" * 60_000}"].each do |line|
      _, parser = Timeout.timeout(60) { parse("#{line}\n" * 20) }
      refute_nil parser
    end
  end

  private

  def mutated(text, random)
    text = text.dup
    random.rand(1..20).times do
      at = random.rand(text.bytesize + 1)
      case random.rand(4)
      when 0 then text.setbyte(at, random.rand(256)) if at < text.bytesize
      when 1 then text = text.byteslice(0, at).to_s + text.byteslice(at + random.rand(1..80)..).to_s
      when 2 then text = text.byteslice(0, at) + text.byteslice(random.rand(at + 1), 80).to_s + text.byteslice(at..).to_s
      else text = text.byteslice(0, at) + ["\n", "\t", " ", "(", ")", "/", ":", "\xFF".b].sample(random: random) +
                  text.byteslice(at..).to_s
      end
    end
    text
  end
end

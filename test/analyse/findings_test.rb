# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require "pitwall/analyse"
require "pitwall/record"
require "pitwall/show"
require "pitwall/views/hints"

# The rules, on synthetic recordings.
class FindingRulesTest < Minitest::Test
  Findings = Pitwall::Analyse::Findings

  MAIN = ["<main>", "/srv/app/main.rb", 0, 3].freeze
  PUMA = ["Puma::ThreadPool#run", "/usr/lib/ruby/gems/3.4.0/gems/puma-6.4.0/lib/puma/thread_pool.rb", 10, 20].freeze
  MS = 1000

  def found(**head, &block)
    Findings.of(RandomRecording.read(RecordingBuilder.build(**head, &block)).segments)
  end

  def work(line, ms, name: "Shop#work", below: [], **row)
    stack = [MAIN, [name, "/srv/app/shop.rb", line - 1, line], *below]
    { stack: stack, wall: ms * MS, cpu: ms * MS, captures: ms, **row }
  end

  def c(name) = [name, "", 0, 0, 1]
  def gem(name) = [name, "/usr/lib/ruby/gems/3.4.0/gems/json-2.9.1/lib/json.rb", 1, 2]

  def test_a_heavy_line_with_what_it_calls
    finding, = found do |segment|
      segment.row(**work(7, 100))
      segment.row(**work(7, 300, below: [gem("JSON.generate"), c("String#encode")]))
      (10..19).each { |line| segment.row(**work(line, 20)) }
    end
    expected = [:heavy_line, "/srv/app/shop.rb", 7, "JSON.generate"]
    assert_equal expected, finding.to_h.values_at(:kind, :path, :line, :subject)
    assert_in_delta 400 / 600.0, finding.share
    assert_equal 400_000_000, finding.amount
  end

  def test_a_method_whose_lines_are_heavy_together
    finding, = found do |segment|
      (10..19).each { |line| segment.row(**work(line, 20)) }
      (30..39).each { |line| segment.row(**work(line, 10, name: "Other#m#{line}")) }
    end
    assert_equal [:heavy_method, "Shop#work"], [finding.kind, finding.method]
  end

  def test_nothing_stands_out_in_even_work_nor_in_short_recordings
    assert_empty(found { |segment| (10..29).each { |line| segment.row(**work(line, 20, name: "Shop#m#{line}")) } })
    assert_empty(found { |segment| segment.row(**work(7, 40)) })
    assert_empty(found { |_| nil })
  end

  def test_other_code_alone_is_nobodys_line
    assert_empty(found { |segment| segment.row(stack: [PUMA, c("String#unpack")], wall: 500 * MS, cpu: 500 * MS) })
  end

  def test_a_scan_comes_before_the_line_it_is_in
    findings = found { |segment| segment.row(**work(7, 300, below: [c("Array#include?")])) }
    expected = [:repeated_scan, "Array#include?", 7]
    assert_equal [expected], findings.map { |finding| finding.to_h.values_at(:kind, :subject, :line) }
  end

  # The line that holds a lock is not the line where other threads wait.
  def test_a_lock_and_the_line_that_holds_it
    finding, = found do |segment|
      taking = [PUMA, ["Stats#count", "/srv/app/stats.rb", 10, 11], c("Thread::Mutex#synchronize")]
      (1..4).each do |thread|
        segment.thread(thread, "worker #{thread}")
        segment.row(thread: thread, stack: taking, wall: 600 * MS, cpu: 0, state: 2)
        holding = [*taking, ["block in Stats#count", "/srv/app/stats.rb", 11, 12]]
        segment.row(thread: thread, stack: holding, wall: 200 * MS, cpu: 10 * MS)
      end
    end
    assert_equal [:lock, "/srv/app/stats.rb", 12], finding.to_h.values_at(:kind, :path, :line)
    assert_equal 11, finding.figures[:waiting_line]
    assert_in_delta 0.75, finding.share
    assert_equal 4, finding.figures[:threads]
  end

  # A thread that waits for a condition has released the lock. Who holds another lock is unknown.
  def test_a_condition_holds_no_lock
    finding, = found do |segment|
      2.times { |at| segment.thread(at + 1, "worker #{at}") }
      waits = { wall: 900 * MS, cpu: 0, state: 2 }
      pool = [PUMA, ["Pool#checkout", "/srv/app/pool.rb", 4, 5], c("Thread::Mutex#synchronize"), gem("Timeout.timeout")]
      segment.row(thread: 1, stack: [*pool, c("Thread::ConditionVariable#wait"), c("Thread::Mutex#sleep")], **waits)
      stats = [PUMA, ["Stats#count", "/srv/app/stats.rb", 10, 11], c("Monitor#synchronize")]
      segment.row(thread: 2, stack: stats, **waits)
    end
    assert_equal [:lock, "/srv/app/stats.rb", 11], finding.to_h.values_at(:kind, :path, :line)
  end

  # A pool's threads that wait at an empty queue are no finding.
  def test_waiting_for_work_is_no_finding
    findings = found do |segment|
      segment.thread(1, "worker")
      segment.row(stack: [PUMA, c("Thread::Queue#pop")], wall: 5_000 * MS, cpu: 0, state: 2)
      (10..29).each { |line| segment.row(**work(line, 20, name: "Shop#m#{line}")) }
    end
    assert_empty findings
  end

  def test_waiting_for_a_child_or_for_data
    { "Process.wait" => :child, "IO#read" => :io, "File#flock" => :file_lock }.each do |name, what|
      finding, = found do |segment|
        segment.row(**work(7, 300, below: [gem("Open3.capture2"), c(name)]), cpu: 0, state: 2)
        segment.row(**work(9, 40))
      end
      assert_equal [:waiting, what, 7], [finding.kind, finding.figures[:what], finding.line]
    end
  end

  # Without thread states, a thread without a core looks like a waiting one.
  def test_without_states_only_calls_that_wait_count
    found = lambda do |name|
      found(thread_states: false) do |segment|
        segment.row(**work(7, 3000, below: [c(name)], state: 3), cpu: 20 * MS)
        (10..29).each { |line| segment.row(**work(line, 20, name: "Shop#m#{line}", state: 3)) }
      end.map(&:kind)
    end
    assert_equal [:waiting], found.call("IO#read")
    assert_empty found.call("File.file?")
  end

  def test_garbage_collection_and_the_line_it_interrupts
    findings = found do |segment|
      segment.row(**work(7, 200, below: [["(marking)", "", 0, 0, 2]]))
      (10..29).each { |line| segment.row(**work(line, 30, name: "Shop#m#{line}")) }
      segment.collection(marking: 200_000_000, sweeping: 10_000_000)
    end
    assert_equal [[:garbage, 7]], findings.map { |finding| [finding.kind, finding.line] }
    refute findings.first.figures[:charged]
  end

  def test_what_loading_a_library_takes
    rubygems = ["Kernel#require", "/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb", 36, 85]
    boot = [MAIN, rubygems, c("Kernel#require")]
    file = ->(name) { ["<top (required)>", "/usr/lib/ruby/3.4.0/#{name}.rb", 1, 4] }
    findings = found do |segment|
      segment.row(stack: [*boot, file["yaml"], c("Kernel#require"), file["psych"]], wall: 410 * MS, cpu: 400 * MS)
      (1..9).each { |at| segment.row(stack: [*boot, file["part#{at}"]], wall: 65 * MS, cpu: 60 * MS) }
    end
    boot = findings.find { |finding| finding.kind == :boot }
    assert_equal ["yaml", 3], [boot.subject, boot.line]
    assert_in_delta 410 / 995.0, boot.share
    refute(findings.any? { |finding| finding.kind == :heavy_line }, "the line that loads is told once")
  end

  # A gem's executable loads the real executable, which loads the gem and then does all its work.
  def test_what_a_program_does_after_loading_is_not_loading
    exe = ["<top (required)>", "/usr/lib/ruby/gems/3.4.0/gems/cop-1.0/exe/cop", 1, 9]
    library = ["<top (required)>", "/usr/lib/ruby/gems/3.4.0/gems/cop-1.0/lib/cop.rb", 1, 4]
    program = [MAIN, c("Kernel#load"), exe]
    work = (1..9).map { |depth| ["Cop#m#{depth}", "/usr/lib/ruby/gems/3.4.0/gems/cop-1.0/lib/run.rb", depth, depth] }
    kinds = lambda do |rows|
      found { |segment| rows.each { |stack, ms| segment.row(stack: stack, wall: ms * MS, cpu: ms * MS) } }.map(&:kind)
    end
    refute_includes kinds.([[[*program, work.first], 500], [[*program, c("Kernel#require"), library], 40]]), :boot
    assert_empty kinds.([[[*program, *work], 500]]), "a line that starts the program says nothing"
    assert_empty kinds.([[[MAIN, gem("Gem.activate_and_load_bin_path"), c("Kernel#load"), exe, *work], 500]])
    refute_includes kinds.([[[MAIN, c("Kernel#require"), library, *work], 500]]), :boot
    assert_includes kinds.([[[MAIN, c("Kernel#require"), library, *work.first(5)], 500]]), :boot
    mine = ["<top (required)>", "/srv/app/exe/cop", 1, 9]
    assert_includes kinds.([[[MAIN, c("Kernel#load"), mine, c("Kernel#require"), library], 500]]), :boot
  end

  # The main thread of a recording without marks. Its stack shows that the program is a server.
  GEMS = "/usr/lib/ruby/gems/3.4.0/gems"
  LAUNCHER = [PUMA, ["Puma::Launcher#run", "#{GEMS}/puma-6.4.0/lib/puma/launcher.rb", 1, 2]].freeze
  LOADED = [MAIN, ["Kernel#require", "", 0, 0, 1],
            ["<top (required)>", "#{GEMS}/activerecord-8.1.1/lib/active_record/base.rb", 1, 4]].freeze
  ROUTE = { "route" => "GET /" }.freeze

  def served(serving:, marked:, main: [*LAUNCHER, c("Thread#join")])
    found(pid: 4242) do |segment|
      segment.thread(1, "main", native_id: 4242)
      segment.thread(2, "puma 1", native_id: 4243)
      segment.row(stack: LOADED, wall: 900 * MS, cpu: 900 * MS)
      segment.row(stack: main, wall: 2000 * MS, cpu: 0, state: 2)
      segment.row(thread: 2, **work(7, serving), labels: ROUTE) if marked
      segment.row(thread: 2, **work(7, serving)) unless marked
      segment.work(ROUTE, count: 20, ns: serving * 1_000_000) if marked
    end
  end

  # The boot of a server with marked requests is no finding: no request waits for the boot.
  def test_the_boot_of_a_server_that_served
    finding, = served(serving: 200, marked: true)
    assert_equal [:heavy_line, 7, :recording], [finding.kind, finding.line, finding.proof]
    assert_in_delta 200 / 1100.0, finding.share, 0.01, "of the whole, as in the tables"
    assert_equal [:heavy_line], served(serving: 200, marked: true).map(&:kind)
    assert_equal %i[heavy_line boot], served(serving: 200, marked: false).map(&:kind)
    boot, = served(serving: 20, marked: false)
    assert_equal [:boot, "active_record/base"], [boot.kind, boot.subject]
  end

  # Garbage collection of the boot does not count for the requests.
  def test_collections_while_a_server_boots
    kinds = lambda do |serving|
      found(pid: 4242) do |segment|
        segment.thread(1, "main", native_id: 4242)
        segment.row(stack: [*LOADED, ["(marking)", "", 0, 0, 2]], wall: 300 * MS, cpu: 300 * MS)
        segment.row(stack: [*LAUNCHER, c("Thread#join")], wall: 2000 * MS, cpu: 0, state: 2)
        segment.thread(2, "puma 1", native_id: 4243)
        segment.row(thread: 2, **work(7, 200 - serving), labels: ROUTE)
        marking = work(7, serving, below: [["(marking)", "", 0, 0, 2]])
        segment.row(thread: 2, **marking, labels: ROUTE) if serving.positive?
        segment.work(ROUTE, count: 20, ns: 200_000_000)
        segment.collection(marking: (300 + serving) * 1_000_000)
      end.select { |finding| finding.kind == :garbage }
    end
    assert_empty kinds.(0)
    finding, = kinds.(80)
    assert_equal [80_000_000, 7, true], [finding.amount, finding.line, finding.figures[:booted]]
    assert_in_delta 0.4, finding.share
  end

  # `compare -- CMD` would wait for ever for the end of a server.
  def test_a_server_without_marks_is_proved_by_recordings
    assert_equal [:recording], served(serving: 200, marked: false).map(&:proof).uniq
    accepts = [MAIN, c("TCPServer#accept")]
    assert_equal [:recording], served(serving: 200, marked: false, main: accepts).map(&:proof).uniq
    beside = [MAIN, ["Shop#wait", "/srv/app/shop.rb", 1, 2], c("Thread#join")]
    assert_equal [:command], served(serving: 200, marked: false, main: beside).map(&:proof).uniq
    finding = served(serving: 200, marked: false).first
    words = lambda do |file|
      Pitwall::Show::FindingWords.new(file: file, repository: true, hints: Pitwall::Views::Hints).proof(finding)
    end
    assert_equal ["pitwall compare a.pit NEW.pit", "pitwall compare NEW.pit NEWER.pit"],
                 [words.("a.pit"), words.("NEW.pit")]
  end

  # Collections that Pitwall triggers to count retained objects do not count for the program.
  def test_collections_of_pitwalls_own_are_no_finding
    kinds = lambda do |own|
      found do |segment|
        (10..29).each { |line| segment.row(**work(line, 30, name: "Shop#m#{line}")) }
        segment.collection(marking: 200_000_000)
        segment.site(2, counters: [0] * 9 + [own])
      end.map(&:kind)
    end
    assert_includes kinds.(0), :garbage
    refute_includes kinds.(180_000_000), :garbage
  end

  def test_a_route_and_a_slow_request
    slow, fast = { "route" => "GET /report" }, { "route" => "GET /" }
    findings = found do |segment|
      segment.thread(1, "puma 1")
      segment.row(stack: [PUMA], wall: 10 * MS, cpu: 10 * MS, labels: slow)
      segment.row(stack: [PUMA], wall: 10 * MS, cpu: 10 * MS, labels: fast)
      segment.work(slow, count: 10, ns: 900_000_000)
      segment.work(fast, count: 90, ns: 500_000_000)
      segment.mark(fast, end_ns: 400_000_000, ns: 350_000_000)
    end
    expected = [[:route, "GET /report"], [:slow_request, "route=GET /"]]
    assert_equal expected, findings.map { |finding| [finding.kind, finding.subject] }
    even = found do |segment|
      segment.row(stack: [PUMA], labels: slow)
      segment.row(stack: [PUMA], labels: fast)
      [slow, fast].each { |labels| segment.work(labels, count: 50, ns: 500_000_000) }
    end
    assert_empty even
  end

  # For any recording, findings contain only data.
  def tests(*times)
    found do |segment|
      segment.row(stack: [PUMA], wall: 10 * MS, cpu: 10 * MS)
      times.each_with_index do |ms, number|
        segment.test({ "test" => "ShopTest#test_#{number}" }, count: 1, ns: ms * 1_000_000, cpu: 1)
      end
    end
  end

  def test_one_test_of_several_that_takes_a_large_part_of_their_time
    finding, = tests(70, 20, 30, 20, 30)
    assert_equal [:slow_test, :tests, "ShopTest#test_0", 70_000_000, 5],
                 [*finding.to_h.values_at(:kind, :of, :subject, :amount), finding.figures[:tests]]
    assert_in_delta 70 / 170.0, finding.share
    assert_equal [["--view", "tests"], :command], [finding.view, finding.proof] # no run of it is known by itself
    assert_empty tests(60, 40, 40, 30), "twice what each would take if all took the same"
    assert_empty tests(90, 10), "of two tests one takes more"
    assert_empty tests(30, 1, 1, 1, 1), "short"
    assert_empty tests(*[29] * 5, 100, *[29] * 5), "less than 30%"
  end

  def test_random_recordings_are_told_in_at_most_three_findings_that_become_words
    words = Pitwall::Show::FindingWords.new(file: "a.pit", base: "/srv/app", hints: Pitwall::Views::Hints)
    40.times do |seed|
      findings = Findings.of(RandomRecording.read(RandomRecording.new(seed).bytes).segments)
      assert_operator findings.size, :<=, Findings::MOST
      findings.each { |finding| assert_match(/\A[^\n]+\.\z/, words.to_h(finding)["text"]) }
    end
  end
end

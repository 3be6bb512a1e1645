# frozen_string_literal: true

require_relative "test_helper"
require "json"
require "open3"
require "rbconfig"
require "stringio"
require "tmpdir"
require_relative "../benchmarks/support/boot_application"
require_relative "../benchmarks/support/command"
require_relative "../benchmarks/support/generated_shop"
require_relative "../benchmarks/support/pit_chunks"
require_relative "../benchmarks/support/share_errors"
require_relative "../benchmarks/support/statistics"
require_relative "../benchmarks/support/strace_counts"
%w[deep web_like objects truth truth_threads mixed].each { |name| require_relative "../benchmarks/programs/#{name}" }

module BenchmarksTest
  FOLDER = File.expand_path("../benchmarks", __dir__)

  class Listing < Minitest::Test
    NOT_BENCHMARKS = %w[bare programs support].freeze

    def test_every_benchmark_is_listed
      files = Dir.glob("*/**/*.rb", base: FOLDER).reject { |file| NOT_BENCHMARKS.include?(file.split("/").first) }

      assert_equal Benchmarks::LIST.keys.sort, files.map { |file| file.delete_suffix(".rb") }.sort
    end

    def test_every_profiler_has_its_file
      files = Benchmarks::Profilers::CASES.values.map(&:first).uniq.sort

      assert_equal files, Dir.children(File.join(FOLDER, "support/profilers")).map { |file| file.delete_suffix(".rb") }.sort
    end

    def test_every_gem_of_a_peer_is_locked
      lock = File.read(File.join(FOLDER, "Gemfile.lock"))

      Benchmarks::Profilers::CASES.values.map(&:last).compact.uniq.each { |gem| assert_match(/^    #{gem} \(/, lock) }
    end
  end

  class CommandLine < Minitest::Test
    def test_lists
      assert_equal [0, "#{Benchmarks::LIST.keys.join("\n")}\n", ""], run_command("--list")
    end

    def test_refuses_in_one_line_what_it_does_not_know
      [%w[nothing], %w[--cases nobody], %w[--rounds 0], %w[--unknown], %w[--quick --write], %w[--beside /nowhere]].each do |argv|
        status, out, err = run_command(*argv)

        assert_equal 2, status, argv.inspect
        assert_empty out
        assert_equal 1, err.lines.size, err
      end
    end

    private

    def run_command(*argv)
      out = StringIO.new
      err = StringIO.new
      [Benchmarks::Command.new(out: out, err: err).run(argv), out.string, err.string]
    end
  end

  class ProgramsTest < Minitest::Test
    def test_fixed_work_gives_the_same_answer_each_time
      assert_equal Programs::Deep.new.run(50), Programs::Deep.new.run(50)
      assert_equal Programs::WebLike.new.run(50), Programs::WebLike.new.run(50)
    end

    def test_deep_is_deep
      depths = []
      program = Class.new(Programs::Deep) { define_method(:mix) { |value| depths << caller_locations(0).size && super(value) } }
      base = caller_locations(0).size
      program.new.run(8)

      assert_includes 150..200, depths.max - base
    end

    def test_mixed_ends_by_itself
      assert_operator Programs::Mixed.new.run(0.05), :>=, 1
    end

    def test_the_truth_sums_up
      truth = Programs::Truth.new(0.1).run

      assert_equal Programs::Truth::SECTIONS.keys, truth[:threads].first[:sections].keys
      assert_truth truth
    end

    def test_the_truth_of_threads_sums_up
      truth = Programs::TruthThreads.new(0.3).run

      assert_equal Programs::TruthThreads::SECTIONS, truth[:threads].flat_map { |thread| thread[:sections].keys }
      assert_truth truth
    end

    def test_a_seed_repeats_the_order_of_visits
      schedules = Array.new(2) { Programs::Truth.new(0.1, seed: 7).send(:schedule) }

      assert_equal(*schedules)
    end

    private

    # How little lies between the sections depends on the machine's other work: only the bounds are certain.
    def assert_truth(truth)
      truth[:threads].each do |thread|
        sections = thread[:sections].values
        %i[wall_ns cpu_ns].each { |clock| assert_operator sections.sum { |spent| spent[clock] }, :<=, thread[clock] }
        assert_operator sections.sum { |spent| spent[:wall_ns] }, :>, thread[:wall_ns] / 5 # the rest is waiting for a turn, more of it on a busy machine
        sections.each { |spent| assert_operator spent[:visits], :>=, 1 }
      end
    end
  end

  class Mathematics < Minitest::Test
    S = Benchmarks::Statistics

    def test_median
      assert_equal 2, S.median([3, 1, 2])
      assert_in_delta 2.5, S.median([4, 1, 2, 3])
    end

    def test_an_estimate_of_few_values_is_students
      estimate = S.estimate([1, 2, 3, 4, 5])

      assert_in_delta 3, estimate.point
      assert_in_delta 3 - (2.776 * Math.sqrt(2.5 / 5)), estimate.low, 0.01
      assert_in_delta 6, estimate.low + estimate.high
    end

    def test_one_disturbed_round_does_not_move_a_trimmed_estimate
      calm = (1..20).to_a

      assert_in_delta S.estimate(calm).point, S.estimate(calm[0..-2] + [1000]).point
    end

    def test_two_values_give_no_interval
      assert_equal [-Float::INFINITY, Float::INFINITY], S.estimate([1, 2]).to_a[1, 2]
    end
  end

  class Shares < Minitest::Test
    def test_totals_count_recursion_once_and_know_methods_in_any_spelling
      totals = Benchmarks::MethodTotals.of([[["main", "Foo#heavy", "block in Foo#heavy"], 3], [["heavy", "Integer#**"], 2]])

      assert_equal({ "(all)" => 5, "main" => 3, "heavy" => 5, "Integer#**" => 2 }, totals)
    end

    def test_errors_are_shares_minus_true_shares_in_points
      errors = Benchmarks::ShareErrors.new([run_of(60, 40), run_of(50, 50)], whole: nil)

      assert_in_delta 5.0, errors.largest("wall").last
      assert_in_delta 10.0, errors.worst_of_rounds("wall").first
      assert_in_delta 0.0, errors.worst_of_rounds("wall").last
      assert_in_delta 2.0, errors.thread_cpu_percent
    end

    private

    # The truth is half and half.
    def run_of(a, b)
      { totals: { wall: { "(all)": a + b, a: a, b: b } }, thread_cpu_ns: { "7": 98 },
        truth: { threads: [{ native_thread_id: 7, wall_ns: 100, cpu_ns: 100, sections: { a: { wall_ns: 50 }, b: { wall_ns: 50 } } }] } }
    end
  end

  class Boots < Minitest::Test
    def test_every_copy_of_the_generated_shop_is_the_same
      Dir.mktmpdir do |folder|
        copies = %w[a b].map { |name| File.join(folder, name).tap { |copy| Benchmarks::GeneratedShop.new(copy).write } }
        assert_equal(*copies.map { |copy| texts_of(copy) })
        added = texts_of(copies.first).reject { |name, _| File.file?(File.join(Benchmarks::Shop::FOLDER, name)) }

        assert_equal [1000, 20], [added.keys.grep(/rb$/).size, added.keys.grep(/yml$/).size]
        added.each { |name, text| assert_includes 20..60, text.lines.size, name if name.end_with?(".rb") }
        assert_equal 250, File.read(File.join(copies.first, "config/routes.rb")).scan(/^  resources :\w+s$/).size # 8 routes each
      end
    end

    def test_the_start_of_an_application_is_measured
      Dir.mktmpdir do |folder|
        error = assert_raises(Benchmarks::Context::Failure) { Benchmarks::BootApplication.at(folder) }
        assert_equal "PITWALL_BOOT_APPS: #{folder} has no Gemfile", error.message
        FileUtils.mkdir_p([File.join(folder, "bin"), File.join(folder, "vendor/bundle")])
        File.write(File.join(folder, "Gemfile"), "")
        File.write(File.join(folder, "bin/rails"), APPLICATION)
        application = Benchmarks::BootApplication.at(folder)
        found = application.start(Benchmarks::BootApplication::RUNNER, { "WANTED" => "1" })

        assert_equal [File.basename(folder), [%w[bin/rails runner 1], %w[bin/rails -T], %w[bin/rails console]]],
                     [application.name, application.commands(true)]
        found.each_value { |figure| assert_operator figure, :positive? }
        assert_includes File.read(File.join(folder, "seen")), File.join(folder, "vendor/bundle")
        error = assert_raises(Benchmarks::Context::Failure) { application.start(%w[bin/rails runner 1], {}) }
        assert_equal "bin/rails runner 1 failed: not wanted", error.message
      end
    end

    # Writes nothing by itself: its caller reads features and memory.
    APPLICATION = <<~'RUBY'
      abort "not wanted" unless ENV["WANTED"]
      File.write("seen", ENV["BUNDLE_PATH"])
      system(RbConfig.ruby, "-e", "1") or abort "a child failed"
    RUBY
    private_constant :APPLICATION

    def test_calls_that_map_memory_or_wait_are_not_counted
      summary = <<~TEXT
        % time     seconds  usecs/call     calls    errors syscall
        ------ ----------- ----------- --------- --------- ----------------
         75.66    0.232284      232284         1           ppoll
          6.79    0.020844           0     21819     21819 readlink
          1.78    0.005473           1      3474       695 openat
          0.59    0.001818           2       879           mmap
          0.00    0.000000           0         1           execve
        ------ ----------- ----------- --------- --------- ----------------
        100.00    0.307026           3     26174     22514 total
      TEXT

      assert_equal 21_819 + 3474 + 1, Benchmarks::StraceCounts.sum(summary)
    end

    private

    # { path below the folder => text }
    def texts_of(folder)
      Dir.glob("**/*", base: folder).select { |name| File.file?(File.join(folder, name)) }.to_h { |name| [name, File.binread(File.join(folder, name))] }
    end
  end

  class Writing < Minitest::Test
    def test_a_section_replaces_its_predecessor_only
      text = ["one (Ruby 3.4)", "two (Ruby 3.4)"].reduce("# Results\n") { |all, name| Benchmarks::Results.replace(all, name, "## #{name}\nold") }
      text = Benchmarks::Results.replace(text, "one (Ruby 3.4)", "## one (Ruby 3.4)\nnew")

      assert_equal "# Results\n\n## two (Ruby 3.4)\nold\n\n## one (Ruby 3.4)\nnew\n", text
    end

    def test_a_result_is_written_with_its_command_and_raw_values
      Dir.mktmpdir do |folder|
        Benchmarks::Results.write(result, folder: folder)
        text = File.read(File.join(folder, "RESULTS.md"))

        assert_includes text, "## a/b (Ruby #{Benchmarks::Result.ruby})"
        assert_includes text, "`benchmarks/run a/b --write`"
        assert_includes text, "| x | 1 |"
        assert_includes text, "small: 1 ms: met"
        assert_equal({ "n" => 1 }, JSON.parse(File.read(Dir[File.join(folder, "runs/*.json")].first))["data"])
      end
    end

    def test_goals_say_what_became_of_them
      assert_equal ["t: 1: met", "t: 1: NOT met", "t: 1: undecided (more rounds)", "t: not measured"],
                   [*[true, false, nil].map { |met| Benchmarks::Goal.new("t", "1", met) }, Benchmarks::Goal.not_measured("t")].map(&:to_s)
    end

    def test_chunks_are_measured_with_their_headers
      Dir.mktmpdir do |folder|
        path = File.join(folder, "x.pit")
        chunk = ->(type, payload) { [type, 0, payload.size, payload.size, 0, payload].pack("a4Cx3V3a*") }
        File.binwrite(path, "PITWALL 1\n#{chunk["HEAD", "{}"]}#{chunk["SAMP", "12345"]}PITWALL 1\n#{chunk["SAMP", "1"]}")

        assert_equal [22, 46], Benchmarks::PitChunks.split(path)
      end
    end

    private

    def result
      Benchmarks::Result.new(tables: [Benchmarks::Table.new("t", %w[case figure], [%w[x 1]])], goals: [Benchmarks::Goal.new("small", "1 ms", true)],
                             notes: [], data: { n: 1 }, name: "a/b", command: "benchmarks/run a/b --write", started_at: Time.at(0), seconds: 1,
                             machine: Benchmarks::Machine.describe)
    end
  end
end

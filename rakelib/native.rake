# frozen_string_literal: true

# The extension under sanitizers, and under load. These need no more than the compiler and (for one) valgrind; what is
# missing is said and skipped, or, with PITWALL_CI set, a failure.

require "fileutils"
require "rbconfig"
require_relative "../script/checkout"

module NativeTasks
  # What a sanitizer run is for: everything that starts the extension, without what measures time or memory.
  TESTS = %w[test/collect/allocations_test.rb test/collect/allocations_hazards_test.rb
             test/collect/contract_test.rb test/collect/hazards_test.rb test/collect/names_test.rb
             test/collect/native_test.rb test/collect/native_callbacks_test.rb test/collect/native_hazards_test.rb
             test/collect/query_hazards_test.rb test/collect/mn_threads_test.rb test/collect/gc_test.rb
             test/collect/gc_log_test.rb test/collect/syscalls_test.rb test/collect/syscalls_hazards_test.rb
             test/collect/syscall_shortcuts_test.rb test/collect/threads_test.rb test/collect/trace_test.rb
             test/collect/c_waits_test.rb test/ruby_assumptions_test.rb test/stress/loads_test.rb
             test/stress/sessions_test.rb].freeze
  # Left out where minutes count. The third way of sampling shares its code with the others, and slow loads find the
  # same faults as fast ones.
  LONG = "Safepoint|_safepoint|at_1000_Hz|test_memory|random_stacks"
  MEASURING = "memory|full_disk|may_not_grow|share_the_gvl|looked_at_once|end_of_the_machine_stack|deep_stacks|" \
              "cpu_of_each|segmentation_fault"
  # AddressSanitizer's allocator is not made for forks of processes with threads: a child may find its lock taken.
  FORKING = "fork|child|daemon|without_at_exit|no_library|processes_of_all_kinds|becomes_another|seccomp|" \
            "exactly_what_strace"

  # It takes a vfork on a signal's stack, and frames that were left by a cancelled thread or by Ruby's exceptions (which
  # jump without telling it), for faults, in any program. Watching caches runs program code below frames of Pitwall's.
  UNKNOWN = "processes_in_the_middle|cancelled_where_it_waits|CachesCollector"

  # What must work on a Ruby whose layout is not known.
  WITHOUT_LAYOUT = %w[test/collect/contract_test.rb test/native/unknown_layout_test.rb
                      test/native/layout_test.rb].freeze

  module_function

  # A tree of links whose lib/ has another build of the extension; tests find it by TEST_LIB.
  #: (String, Hash[String, String]) -> String  the lib folder
  def build(name, env)
    root = File.join(Checkout::ROOT, "tmp", name, Checkout::TAG)
    build = File.join(root, "build")
    native = File.join(root, "lib/pitwall/native", Checkout::TAG)
    FileUtils.rm_rf(root)
    FileUtils.mkdir_p([build, File.dirname(native, 2)])
    FileUtils.cp_r(Dir[File.join(Checkout::ROOT, "lib/pitwall.rb")], File.join(root, "lib"))
    Dir[File.join(Checkout::ROOT, "lib/pitwall/*")].each do |path|
      FileUtils.cp_r(path, File.join(root, "lib/pitwall")) unless File.basename(path) == "native"
    end
    FileUtils.mkdir_p(native)
    log = File.join(root, "build.log")
    made = Dir.chdir(build) do
      system(env, RbConfig.ruby, File.join(Checkout::ROOT, "ext/pitwall/extconf.rb"), out: log, err: [:child, :out]) &&
        system("make", "-j2", out: [log, "a"], err: [:child, :out])
    end
    abort "#{name}: the extension was not built: #{log}" unless made
    FileUtils.cp([File.join(build, "pitwall.#{RbConfig::CONFIG["DLEXT"]}"), File.join(build, "pitwall-launch")], native)
    File.join(root, "lib")
  end

  def test_files(env, files, pattern, exclude = nil)
    loader = "ARGV.shift(#{files.size}).each { |file| require File.expand_path(file) }"
    pattern ||= "/\\A(?!.*(#{exclude}))/" if exclude
    options = pattern ? ["-n", pattern] : []
    Dir.chdir(Checkout::ROOT) { Rake::FileUtilsExt.sh(env, RbConfig.ruby, "-e", loader, *files, *options) }
  end

  # The extension built with AddressSanitizer; left_out: a part of a pattern, e.g. "|at_1000_Hz".
  #: (String) -> void
  def test_with_asan(left_out)
    library = `cc -print-file-name=libasan.so`.strip
    library = `gcc -print-file-name=libasan.so`.strip unless File.exist?(library)
    return missing("AddressSanitizer: the compiler has no libasan.so") unless File.exist?(library)

    lib = build("asan", "PITWALL_ASAN" => "1")
    # Ruby frees nothing at its end, scans its stack, and has signal stacks of its own. A link named libasan.so may be
    # a linker's script; only the real file can be preloaded.
    env = { "TEST_LIB" => lib, "TEST_PRELOAD" => File.realpath(library), "PITWALL_ASAN" => "1",
            "ASAN_OPTIONS" => "detect_leaks=0:use_sigaltstack=0:detect_stack_use_after_return=0:handle_segv=0:" \
                              "handle_abort=0:exitcode=66" }
    test_files(env, TESTS, ENV["TESTS_NAMED"], "#{MEASURING}|#{FORKING}|#{UNKNOWN}#{left_out}")
  end

  def missing(what)
    ENV["PITWALL_CI"] ? abort(what) : puts("skipped: #{what}")
  end
end

namespace :test do
  desc "The extension's tests with the extension built with AddressSanitizer: a selection of some minutes"
  task(:asan) { NativeTasks.test_with_asan("|#{NativeTasks::LONG}") }

  desc "All of them"
  task(:asan_all) { NativeTasks.test_with_asan("") }

  desc "The collectors' contract and the commands with an extension that knows no Ruby's layout, " \
       "as on a Ruby that is newer than it"
  task :unknown do
    env = { "PITWALL_UNKNOWN_LAYOUT" => "1" }
    lib = NativeTasks.build("unknown", env)
    log = File.expand_path("../build.log", lib)
    warnings = File.readlines(log).grep(/\bwarning:/)
    abort "unknown: compiled with warnings: #{log}\n#{warnings.join}" if warnings.any?
    NativeTasks.test_files(env.merge("TEST_LIB" => lib), NativeTasks::WITHOUT_LAYOUT, ENV["TESTS_NAMED"])
  end

  desc "Faults: each call of the extension's that can fail does, in turn " \
       "(PITWALL_FAULTS_EACH=1: at every place; else a selection)"
  task :faults do
    lib = NativeTasks.build("faults", "PITWALL_FAULTS" => "1")
    NativeTasks.test_files({ "TEST_LIB" => lib }, %w[test/faults/faults.rb], ENV["TESTS_NAMED"])
  end

  desc "A recording under valgrind; only errors with the extension on the stack count. The unit tests in C, too"
  task :valgrind do
    valgrind = system("valgrind", "--version", out: File::NULL, err: File::NULL)
    next NativeTasks.missing("valgrind is not installed") unless valgrind

    NativeTasks.test_files({ "PITWALL_VALGRIND" => "1" }, ["test/stress/valgrind_test.rb"], nil)
    NativeTasks.test_files({ "PITWALL_VALGRIND" => "1" }, ["test/native/units_test.rb"], "/with_valgrind/")
  end

  desc "Hostile loads, for PITWALL_STRESS_SECONDS each (here 5)"
  task :stress do
    env = { "PITWALL_STRESS_SECONDS" => ENV.fetch("PITWALL_STRESS_SECONDS", "5") }
    NativeTasks.test_files(env, Dir["test/stress/*_test.rb"].sort, ENV["TESTS_NAMED"])
  end

  desc "Everything at once, by chance, for PITWALL_SOAK_SECONDS (here 120); PITWALL_SOAK_SEED repeats a run, " \
       "PITWALL_SOAK_LOG=FILE gets a line a piece"
  task :soak do
    env = { "PITWALL_SOAK_SECONDS" => ENV.fetch("PITWALL_SOAK_SECONDS", "120") }
    NativeTasks.test_files(env, ["test/stress/soak_test.rb"], "/SoakTest/")
  end
end

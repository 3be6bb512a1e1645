# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../../script/checkout"

# Runs the command `pitwall` as a process of its own, in a folder of its own.
module CommandLine
  RUBY = RbConfig.ruby
  # As script/pitwall, without the set-up: tests run on what is built.
  START = ["-r#{Checkout::ROOT}/script/checkout", "-e",
           "Checkout.use_vendored_gems; $LOAD_PATH.unshift(ENV.delete('TEST_LIB') || '#{Checkout::ROOT}/lib'); load '#{Checkout::ROOT}/exe/pitwall'", "--"].freeze
  # Ruby code by which a process of root goes on as another user. Nobody keeps root from writing.
  OTHER_USER = Process.euid.zero? ? "Process::Sys.setgid(65534); Process::Sys.setuid(65534); " : ""
  # What a developer's shell or `bundle exec rake` would bring along. TEST_RUBYOPT: for all Rubies that tests start, e.g. --yjit.
  CLEAN = { "RUBYOPT" => ENV["TEST_RUBYOPT"], "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil, "BUNDLER_SETUP" => nil, "NO_COLOR" => nil,
            "PITWALL_PARTS" => nil, "PITWALL_OPTIONS" => nil, "PITWALL_DEBUG" => "1" }.freeze
  Result = Struct.new(:out, :err, :status)

  # A Ruby program long enough for some samples, followed by more code.
  #: (?Float) -> String
  def self.busy(seconds = 0.1) = "t = Process.clock_gettime(1) + #{seconds}; nil while Process.clock_gettime(1) < t;"

  def setup
    super
    @dir = File.realpath(Dir.mktmpdir("pitwall-test-"))
    Dir.mkdir(file(".tmp"))
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  # Runs it to its end. What hangs is killed, with all it started, and fails the test.
  #: (*String, ?env: Hash, ?stdin: String, ?dir: String) -> Result
  def pitwall(*arguments, env: {}, stdin: "", dir: @dir)
    capture(env, RUBY, *START, *arguments, stdin: stdin, dir: dir)
  end

  # Options by which a program that runs with --disable-gems finds these gems. Since Ruby 4.0 fiddle is a gem.
  #: (*String) -> Array[String]
  def gem_options(*names)
    newest = names.filter_map { |name| Gem::Specification.find_all_by_name(name).max_by(&:version) }
    newest.flat_map(&:full_require_paths).select { |path| File.directory?(path) }.map { |path| "-I#{path}" }
  end

  LIMIT_S = 300

  def capture(env, *command, stdin: "", dir: @dir)
    Dir.mktmpdir do |io|
      File.binwrite("#{io}/in", stdin)
      pid = Process.spawn(CLEAN.merge("TMPDIR" => file(".tmp")).merge(env), *command, in: "#{io}/in", out: "#{io}/out", err: "#{io}/err", chdir: dir, pgroup: true)
      status = wait(pid) { Process.kill("KILL", -pid) }
      Result.new(File.binread("#{io}/out"), File.binread("#{io}/err").force_encoding(Encoding::UTF_8), status)
    end
  end

  def wait(pid)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT_S
    until Process.wait(pid, Process::WNOHANG)
      if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        yield
        Process.wait(pid)
        flunk "still running after #{LIMIT_S} s"
      end
      sleep 0.005
    end
    $?
  end

  # Starts it and leaves it running; `err` and `out` are files in the test's folder.
  #: (*String, **untyped) -> Integer
  def pitwall_start(*arguments, env: {}, **options)
    Process.spawn(CLEAN.merge(env), RUBY, *START, *arguments,
                  { chdir: @dir, in: File::NULL, out: file("out"), err: file("err") }.merge(options))
  end

  def file(name) = File.join(@dir, name)

  # Writes files below the test's folder.
  #: (Hash[String, String]) -> void
  def write_files(files)
    files.each do |name, text|
      FileUtils.mkdir_p(File.dirname(file(name)))
      File.write(file(name), text)
    end
  end

  # Waits for what must come, however slow the machine is.
  def eventually(seconds = 120)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (result = yield)
      flunk "did not happen within #{seconds} s: #{File.read(file("err")) rescue nil}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
    result
  end

  # Bad input: a status, one line on standard error and nothing else.
  def assert_one_line(status, expected, result, about = nil)
    assert_equal status, result.status.exitstatus, "#{about} #{result.err}"
    assert_match expected, result.err
    assert_equal [1, ""], [result.err.lines.size, result.out], result.err
  end

  # Everything that was started here has this folder for its working directory.
  def assert_nothing_left
    eventually do
      Dir["/proc/[0-9]*/cwd"].none? do |link|
        File.readlink(link).start_with?(@dir)
      rescue SystemCallError
        false
      end
    end
  end

  def recordings = Dir[File.join(@dir, ".pitwall/*.pit")]

  # The segments of the only recording.
  def segments(path = recordings.first)
    require "pitwall/record"
    Pitwall::Record.read(path).segments
  end
end

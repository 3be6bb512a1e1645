# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/syscall_dispatch"
require "pitwall/record"

# Programs at the limits of descriptors, file sizes and memory end as they do alone.
class LimitsTest < Minitest::Test
  include CommandLine
  include SyscallDispatch

  WAYS = [%w[profile --mode signal], %w[profile --mode outside], %w[profile --mode safepoint], %w[trace],
          %w[allocations], %w[syscalls]].freeze
  WORK = "def work = 20_000.times { |i| i.to_s }\n"
  PROGRAMS = {
    "no descriptor is left" => <<~'RUBY',
      Process.setrlimit(Process::RLIMIT_NOFILE, 0, Process.getrlimit(Process::RLIMIT_NOFILE).last)
      work; Thread.new { work }.join; puts 1
    RUBY
    "all descriptors are open at the end" => <<~'RUBY',
      Process.setrlimit(Process::RLIMIT_NOFILE, 64)
      $open = []
      begin; loop { $open << File.open("/dev/null") }; rescue Errno::EMFILE; puts $open.size > 10; end
      work; Thread.new { work }.join
      [-> { Process.wait(fork { exit!(0) }) }, -> { exec("/no/such/file") }].each do |call|
        call.call
      rescue SystemCallError => error
        p error.class
      end
    RUBY
    "no file may grow" => <<~'RUBY',
      Process.setrlimit(Process::RLIMIT_FSIZE, 0)
      work
      begin; File.write("out", "x"); rescue SystemCallError => error; p error.class; end
      p Process.wait2(fork { work; exit!(3) })[1].exitstatus
    RUBY
    # Measured until it stays: Pitwall's threads may have their memory just now. A limit below what the process has
    # already hangs Ruby 3.1 in a loop of its own, with nothing recorded as well.
    "there is no memory" => <<~'RUBY'
      size = -> { File.read("/proc/self/status")[/VmSize:\s+(\d+)/, 1].to_i * 1024 }
      begin
        before = size.call
        Process.setrlimit(Process::RLIMIT_AS, before + 8_000_000, Process::RLIM_INFINITY)
      end until size.call == before
      20.times { |i| Object.class_eval("def f#{i} = 2_000.times { |n| n.to_s }"); send("f#{i}") }
      begin; Thread.new { work }.join; puts 1; rescue ThreadError; puts 1; end
    RUBY
  }.freeze

  PROGRAMS.each do |name, program|
    define_method(:"test_#{name.tr(" ", "_")}") do
      File.write(file("x.rb"), WORK + program)
      alone = capture({}, RUBY, "x.rb")
      WAYS.each do |way|
        next if way == %w[syscalls] && Pitwall::Native.syscall_dispatch

        result = pitwall(*way, "--quiet", "--record", "x.pit", "--", RUBY, "x.rb")
        assert_equal [alone.out, alone.status.exitstatus], [result.out, result.status.exitstatus], way.join(" ")
        # A file that may not grow is a recording that is not whole; else there is nothing to say.
        said = result.err.lines - alone.err.lines
        assert said.all? { |line| line.start_with?("pitwall: ") }, result.err
        Pitwall::Record.read(file("x.pit")) if File.exist?(file("x.pit"))
      end
    end
  end

  # A Ruby needs one free descriptor to load anything. With two it is recorded, or says why not.
  def test_few_descriptors_from_the_start
    File.write(file("x.rb"), "#{WORK}work; Process.wait(fork { exit!(3) }); puts $?.exitstatus; exit 5")
    command = ->(limit) { ["sh", "-c", "ulimit -n #{limit}; exec \"$@\"", "sh", RUBY, "--disable-gems", "x.rb"] }
    least = (3..40).find do |limit|
      result = capture({}, *command.call(limit))
      result.status.exitstatus == 5 && result.err.empty?
    end
    (1..4).each do |more|
      result = pitwall("profile", "--quiet", "--record", "x.pit", "--", *command.call(least + more))
      assert_equal ["3\n", 5], [result.out, result.status.exitstatus], result.err
      assert result.err.lines.all? { |line| line.start_with?("pitwall: ") }, result.err
    end
  end
end

# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/record"

# Calls of Pitwall's own Ruby code that fail (test/faults/ruby_calls.rb), in the command and in a process that records
# itself.
# PITWALL_FAULTS_EACH=1: at every place.
class RubyFaultsTest < Minitest::Test
  include CommandLine

  INJECTOR = File.expand_path("../faults/ruby_calls.rb", __dir__)
  ERRORS = %w[EMFILE ENOSPC ENOMEM EACCES].freeze
  EACH = !ENV["PITWALL_FAULTS_EACH"].to_s.empty?

  def faults(count, random, most)
    all = (1..count).flat_map { |at| ERRORS.flat_map { |error| ["#{error}:#{at}", "#{error}:#{at}+"] } }
    EACH ? all : all.sample(most, random: random)
  end

  def faulty(fault, *command, calls: nil)
    environment = { "PITWALL_RUBY_FAULT" => fault, "PITWALL_RUBY_CALLS" => calls, "PITWALL_DEBUG" => nil }
    capture(environment, RUBY, "-r#{INJECTOR}", *command)
  end

  # Before the program starts a failure is one line and a status, after it the program's own output and status stand.
  def test_the_command
    seed = Random.rand(10_000)
    File.write(file("x.rb"), "puts 'ran'; 200_000.times { |i| i.to_s }; exit 7")
    command = [*START, "profile", "--quiet", "--record", "x.pit", "--", RUBY, "--disable-gems", "x.rb"]
    assert_equal 7, faulty(nil, *command, calls: file("calls")).status.exitstatus
    failures = faults(Integer(File.read(file("calls"))), Random.new(seed), 25).filter_map do |fault|
      FileUtils.rm_rf([file("x.pit"), *Dir[file("x.parts*")]])
      result = faulty(fault, *command)
      ran = result.out == "ran\n" && result.status.exitstatus == 7
      refused = result.out.empty? && [1, 2, 4].include?(result.status.exitstatus)
      said = result.err.lines.all? { |line| line.start_with?("pitwall: ") } && !result.err.include?("this is a bug")
      lost = ran && result.err.empty? && !File.exist?(file("x.pit"))
      next if (ran || (refused && !result.err.empty?)) && said && !lost

      "#{fault}: #{result.status} #{result.out.inspect} #{result.err}"
    end
    assert failures.empty?, "seed #{seed}\n#{failures.join("\n")}"
  end

  # What can't be recorded is a Pitwall::Error, or goes on without; the block's work is done once where it is recorded.
  def test_a_program_that_records_itself
    seed = Random.rand(10_000)
    File.write(file("x.rb"), <<~'RUBY')
      require "pitwall"
      begin
        Pitwall.profile(path: "x.pit") do
          200_000.times { |i| i.to_s }
          Process.wait(fork { 100_000.times { |i| i.to_s } })
          begin
            exec("/no/such/file")
          rescue Errno::ENOENT
            puts $?.success?
          end
        end
      rescue Pitwall::Error => error
        puts "refused"
        warn "pitwall: #{error.message}"
      end
    RUBY
    command = ["-W0", "-I#{ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")}", "x.rb"]
    assert_equal "true\n", faulty(nil, *command, calls: file("calls")).out
    count = Integer(File.read(file("calls")))
    failures = faults(count, Random.new(seed), 12).filter_map do |fault|
      FileUtils.rm_rf(Dir[file("x*.pit")])
      result = faulty(fault, *command)
      fine = ["true\n", "refused\n"].include?(result.out) && result.status.success?
      marked = result.err.lines.all? { |line| line.start_with?("pitwall: ") }
      said = marked && (result.out == "true\n") == result.err.empty?
      "#{fault}: #{result.status} #{result.out.inspect} #{result.err}" unless fine && said
    end
    assert failures.empty?, "seed #{seed}\n#{failures.join("\n")}"
  end
end

# frozen_string_literal: true

# script/check long [STAGE...]: what takes longer than CI may, for an hour or a night: one stage after the other, all of
# them or those named (a first part of a name, such as "tests", means all that begin with it). Each writes its row of
# doc/long-checks.md when it ends; its output is in tmp/long/STAGE.log. A stage that fails does not stop the others.
#
#   script/check long --list      names the stages
#
# PITWALL_SOAK_SECONDS is the length of the soak (3600). PITWALL_FAULTS is how many faults are planted in each way of
# recording (at every place, which takes hours). PITWALL_REPEATS is how often the busy machine's tests run (20).
# PITWALL_KILLS is how many boots are killed while they write the accelerator's pack (500). Needs
# root for the other Rubies (script/rubies).
# Exit status: 0 all passed, 1 a stage failed, 2 usage.

require "fileutils"

LongChecks = Module.new do
  module_function

  ROOT = File.expand_path("..", __dir__)
  TABLE = File.join(ROOT, "doc/long-checks.md")
  Stage = Struct.new(:name, :ruby, :commands)
  # Roots but that of 4.0 lack the browser and other shells: a skip is no failure there.
  ALL = ["ruby", "script/test"].freeze

  def on(ruby, *words, **env)
    ["script/rubies", "run", ruby, "--", "env", "PITWALL_CI=1", *env.map { |name, value| "#{name}=#{value}" }, *words]
  end

  def stages
    soak = ENV.fetch("PITWALL_SOAK_SECONDS", "3600")
    here = RUBY_VERSION[/\A\d+\.\d+/]
    faults = ENV["PITWALL_FAULTS"] ? { PITWALL_FAULTS: ENV["PITWALL_FAULTS"] } : { PITWALL_FAULTS_EACH: 1 }
    [
      Stage.new("tests", here, [ALL]),
      Stage.new("tests-3.3", "3.3", [%w[script/rubies make 3.3], on("3.3", *ALL)]),
      Stage.new("tests-3.4", "3.4", [%w[script/rubies make 3.4], on("3.4", *ALL)]),
      Stage.new("tests-4.0", "4.0", [%w[script/rubies make 4.0], on("4.0", *ALL)]),
      Stage.new("tests-4.0-yjit", "4.0 --yjit",
                [%w[script/rubies make 4.0],
                 on("4.0", *ALL, RUBYOPT: "--yjit", TEST_RUBYOPT: "--yjit",
                                 TEST_RUBY_OPTIONS: "--yjit --yjit-call-threshold=2")]),
      Stage.new("tests-4.0-zjit", "4.0 --zjit",
                [%w[script/rubies make 4.0], on("4.0", *ALL, RUBYOPT: "--zjit", TEST_RUBYOPT: "--zjit")]),
      Stage.new("busy", here,
                [[*ALL, "--beside", "2", "--except", "test/timing"]] * Integer(ENV.fetch("PITWALL_REPEATS", "20"))),
      Stage.new("unknown-layout-3.4", "3.4",
                [%w[script/rubies make 3.4], on("3.4", "ruby", "script/rake", "test:unknown")]),
      Stage.new("unknown-layout-4.0", "4.0",
                [%w[script/rubies make 4.0], on("4.0", "ruby", "script/rake", "test:unknown")]),
      Stage.new("contract-4.1-dev", "4.1-dev",
                [%w[script/rubies make 4.1-dev], on("4.1-dev", "ruby", "script/setup", "--force"),
                 on("4.1-dev", *ALL, "test/collect/contract_test.rb")]),
      Stage.new("asan", here, [%w[ruby script/rake test:asan_all]]),
      Stage.new("valgrind", here, [%w[ruby script/rake test:valgrind]]),
      Stage.new("faults", here,
                [["env", *faults.map { |name, value| "#{name}=#{value}" }, "ruby", "script/rake", "test:faults"]]),
      Stage.new("faults-4.0", "4.0",
                [%w[script/rubies make 4.0], on("4.0", "ruby", "script/rake", "test:faults", **faults)]),
      Stage.new("benchmarks-4.0", "4.0",
                [%w[script/rubies make 4.0], on("4.0", "ruby", "benchmarks/run", "--quick", "--no-peers")]),
      Stage.new("stress", here, [%w[env PITWALL_STRESS_SECONDS=20 ruby script/rake test:stress]]),
      Stage.new("stress-4.0", "4.0",
                [%w[script/rubies make 4.0],
                 on("4.0", "ruby", "script/rake", "test:stress", PITWALL_STRESS_SECONDS: 20)]),
      Stage.new("soak", here, [["env", "PITWALL_SOAK_SECONDS=#{soak}", "ruby", "script/rake", "test:soak"]]),
      Stage.new("soak-4.0", "4.0",
                [%w[script/rubies make 4.0],
                 on("4.0", "ruby", "script/rake", "test:soak", PITWALL_SOAK_SECONDS: soak)]),
      Stage.new("killed-writers", here,
                [["env", "PITWALL_KILLS=#{ENV.fetch("PITWALL_KILLS", "500")}", "ruby", "script/test",
                  "test/fastboot/killed_writers_test.rb"]]),
      Stage.new("killed-writers-4.0", "4.0",
                [%w[script/rubies make 4.0],
                 on("4.0", "ruby", "script/test", "test/fastboot/killed_writers_test.rb",
                    PITWALL_KILLS: ENV.fetch("PITWALL_KILLS", "500"))]),
      Stage.new("rubys-own-tests", "4.0", [%w[script/rubies make 4.0], on("4.0", "test/peers/ruby_tests", "--all")])
    ]
  end

  # @return [Integer] exit status
  def main(arguments)
    Dir.chdir(ROOT)
    return puts(stages.map(&:name)) || 0 if arguments == ["--list"]

    unknown = arguments.find { |word| stages.none? { |stage| stage.name.start_with?(word) } }
    if unknown
      warn "check long: no stage #{unknown} (script/check long --list)"
      return 2
    end
    named = stages.select { |stage| arguments.any? { |word| stage.name.start_with?(word) } }
    wanted = arguments.empty? ? stages : named
    wanted.map { |stage| run(stage) }.all? ? 0 : 1
  end

  def run(stage)
    FileUtils.mkdir_p("tmp/long")
    log = "tmp/long/#{stage.name}.log"
    File.write(log, "")
    puts "== #{stage.name} (#{log})"
    $stdout.flush
    commit = `git rev-parse --short=12 HEAD`.strip
    changes = `git status --porcelain`.lines.reject { |line| line.end_with?("doc/long-checks.md\n") }
    commit += " and changes" unless changes.empty?
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    passed = stage.commands.all? { |command| system(*command, out: [log, "a"], err: [:child, :out]) }
    passed &&= !warned?(stage, log)
    seconds = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round
    result = passed ? "passed" : "FAILED"
    said = File.read(log, encoding: "UTF-8").scrub
    planted = said.scan(/\b(\d+) faults planted/).flatten.sum(&:to_i)
    runs = said.scan(/^\d+ runs, \d+ assertions, .*$/)
    times = "#{runs.size} times" if runs.size > 1
    counts = [("#{planted} faults planted" if planted.positive?), times, runs.last].compact.join(", ")
    puts "== #{stage.name} #{result} in #{seconds} s#{": #{counts}" unless counts.empty?}"
    enter(stage, commit, Time.now.utc.strftime("%Y-%m-%d"), [result, counts].reject(&:empty?).join(": "),
          "#{seconds / 60} min #{seconds % 60} s")
    passed
  end

  # A Ruby that is not out yet must be compiled for without a warning.
  def warned?(stage, log)
    stage.name.start_with?("contract") && File.read(log, encoding: "UTF-8").scrub.match?(/\bwarning:/)
  end

  # Replaces the stage's row in the table, or adds one.
  def enter(stage, *cells)
    row = "| #{[stage.name, stage.ruby, *cells].join(" | ")} |\n"
    lines = File.readlines(TABLE)
    at = lines.index { |line| line.start_with?("| #{stage.name} |") }
    at ? lines[at] = row : lines.insert(lines.rindex { |line| line.start_with?("|") } + 1, row)
    File.write(TABLE, lines.join)
  end
end

exit LongChecks.main(ARGV.dup) if $PROGRAM_NAME == __FILE__

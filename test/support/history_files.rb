# frozen_string_literal: true

require "json"
require_relative "command_line"

# Files of results, as `pitwall bench` and `compare` write them.
module HistoryFiles
  include CommandLine

  HOST = { "kernel" => "6.1", "cpu" => "AMD EPYC", "cores" => 2, "memory_bytes" => 4 << 30 }.freeze
  # No name of a project or a commit from the machine that runs the tests.
  ALONE = { "PITWALL_STORE" => nil, "PITWALL_SPOOL" => nil, "PITWALL_PROJECT" => "shop", "GITHUB_SHA" => nil,
            "CI_COMMIT_SHA" => nil, "GITHUB_REF_NAME" => nil, "CI_COMMIT_REF_NAME" => nil }.freeze

  # Writes a file of `bench` with one case in two processes.
  #: (String, Float, ?host: Hash, ?name: String) -> String
  def bench_file(name, wall, host: HOST, benchmark: "checkout")
    head = { "schema" => "pitwall/measurements-1", "kind" => "bench", "settings" => {}, "command" => "pitwall bench x.rb",
             "host" => host, "facts" => { "ruby" => "ruby 3.4.1 (2026)" } }
    write_lines(name, [head, { "case" => { "name" => benchmark, "label" => benchmark, "params" => {}, "flags" => [] } },
                       *2.times.map { |block| sample("", benchmark, block, wall) }, { "end" => true }])
  end

  # Writes a file of `compare` with a case in two revisions.
  def compare_file(name, base, side)
    sides = { "main" => "a" * 40, "topic" => "b" * 40 }
    head = { "schema" => "pitwall/measurements-1", "kind" => "compare", "settings" => {}, "command" => "pitwall compare …",
             "host" => HOST, "sides" => sides.map { |label, id| { "name" => label, "facts" => { "revision" => id } } } }
    samples = 2.times.flat_map { |block| [sample("main", "join", block, base), sample("topic", "join", block, side)] }
    write_lines(name, [head, *samples, { "end" => true }])
  end

  def sample(side, name, block, wall)
    { "side" => side, "name" => name, "block" => block, "order" => 0, "values" => { "wall" => [wall], "objects" => [7] },
      "iterations" => 10, "first_ns" => 100, "warmup" => 1, "digest" => nil, "notes" => [] }
  end

  def write_lines(name, objects)
    File.write(file(name), objects.map { |object| "#{JSON.generate(object)}\n" }.join)
    name
  end

  # Runs the verb in this process.
  # @return [Result] with the status as a number
  def history(*words, env: {})
    before = ALONE.merge(env).to_h { |name, _| [name, ENV[name]] }
    ENV.update(ALONE.merge(env))
    out, err = StringIO.new, StringIO.new
    status = Dir.chdir(@dir) { Pitwall::CLI.run(["history", *words], out: out, err: err) }
    CommandLine::Result.new(out.string, err.string, status)
  ensure
    ENV.update(before) if before
  end

  def assert_refused(status, expected, *words, env: {})
    result = history(*words, env: env)
    assert_equal [status, "", 1], [result.status, result.out, result.err.lines.size], result.err
    assert_match expected, result.err
    result
  end

  # Runs with one figure each, a day apart.
  def runs(values, benchmark: "checkout", host: HOST, ruby: ->(_) { "ruby 3.4.1 (2026)" }, source: "s")
    values.each_with_index.map do |value, number|
      figure = Pitwall::History::Figure.new(suite: "", benchmark: benchmark, variant: "", metric: "wall", unit: "ns",
                                            better: "lower", value: value.to_f)
      Pitwall::History::Run.new(source: "#{source} #{benchmark} #{number} #{host}", side: "",
                                measured_at: (Time.utc(2026, 1, 1) + (number * 86_400)).iso8601, host: host,
                                commit_id: format("%040x", number), ruby: ruby.call(number), figures: [figure])
    end
  end

  # Opens the history of the test, or another one.
  def store(place = file("h.sqlite3"), &block)
    Pitwall::History::Store.open(Pitwall::History::Address.parse(place), create: true, &block)
  end

  ROUNDS = 2

  # A process that adds its own runs and some that all writers have, and says so in out#{number}.
  # @return its id
  def writer(number, place)
    fork do
      $stderr.reopen(file("err#{number}"), "w")
      File.open(file("out#{number}"), "w") do |out|
        ROUNDS.times do |round|
          store(place) do |open|
            open.add("shop", runs([1.0, 2.0], source: "shared #{round}"))
            open.add("shop", runs([number.to_f] * 4, source: "own #{number} #{round}"))
            out.puts("saved #{round}")
            out.flush
          end
        end
      end
      exit!(true)
    rescue StandardError => error
      warn error.full_message
      exit!(false)
    end
  end

  # Number of rounds that a writer has reported as saved.
  def saved(number) = File.exist?(file("out#{number}")) ? File.readlines(file("out#{number}")).size : 0

  # Ids of all runs that writers add under a name.
  def run_ids(source)
    size = source == "shared" ? 2 : 4
    ROUNDS.times.flat_map { |round| runs([1.0] * size, source: "#{source} #{round}").map(&:id) }
  end
end

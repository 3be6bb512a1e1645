# frozen_string_literal: true

require_relative "loads_test"
require_relative "../support/allocating_program"
require "pitwall"

# Hours of everything at once, in pieces: a piece is a process that starts and stops recordings, one kind of recording a
# process, under loads by chance. After each piece: did it live, does every recording add up, did memory, descriptors or timers
# grow? Some pieces record all the time (Pitwall.continuous) and some are killed again and again: what was flushed must be there.
# Runs under `rake test:soak` for PITWALL_SOAK_SECONDS; PITWALL_SOAK_SEED repeats one; PITWALL_SOAK_LOG is a file that gets a line a piece.
class SoakTest < Minitest::Test
  include AllocatingProgram

  SECONDS = ENV["PITWALL_SOAK_SECONDS"]&.then { |text| Float(text) } # hours: no part of an ordinary run
  SEED = Integer(ENV.fetch("PITWALL_SOAK_SEED") { Random.new_seed % 1_000_000 })
  PIECE = 12.0
  BURSTS = { "allocations" => { "bursts" => "1", "stacks" => "1", "one_in" => "50" } }.freeze
  # Kinds of recordings; every mode of sampling is one, by itself and with bursts of allocations.
  RECORDERS = Stress::MODES.flat_map { |mode| [{ mode: mode, interval_ns: 100_000 }, { mode: mode, collectors: BURSTS }] } +
              [{ mode: "none", collectors: { "trace" => { "bytes" => "1" } } },
               { mode: "none", collectors: { "allocations" => { "stacks" => "1" } } },
               { mode: "signal", collectors: { "trace" => {}, "allocations" => {} } },
               { mode: "none", collectors: { "caches" => {} } },
               { mode: "none", collectors: { "syscalls" => {} } }].freeze
  # How a piece goes; most start and stop.
  KINDS = %i[sessions sessions sessions sessions killed continuous].freeze
  # What forgets symbols and methods grows by itself; with GC.stress a trace or a count takes minutes.
  GROWING = %i[compaction methods_that_come_and_go].freeze
  SLOW_TRACED = %i[gc_at_every_allocation deep_stacks].freeze
  GROWTH_KB = 48 << 10
  # What Ruby 3.3 and 3.4 do not stand under M:N, with nothing recorded as well (doc/sampling.md, "M:N threads").
  RUBY_HANGS = %i[ractors threads_that_end_badly].freeze
  MN = { "RUBY_MN_THREADS" => "1", "RUBY_MAX_CPU" => "4" }.freeze

  def settings = @settings || {}

  def test_pieces
    random = Random.new(SEED)
    deadline = now + SECONDS
    pieces = Hash.new(0)
    failures = []
    until now > deadline
      recorder = recorders.sample(random: random)
      mn = RUBY_VERSION >= "3.3" && random.rand(3).zero?
      kind = KINDS.sample(random: random)
      seed = random.rand(1_000_000)
      @settings = recorder
      @where = "#{kind}: #{recorder}#{" M:N" if mn}, piece seed #{seed} (PITWALL_SOAK_SEED=#{SEED})"
      logged(failures) { send(:"piece_of_#{kind}", recorder, mn, seed) }
      pieces[[kind, *(kind == :continuous ? [] : [recorder[:mode], *recorder.fetch(:collectors, {}).keys]), *("M:N" if mn)].join("+")] += 1
    end
    warn "soaked for #{SECONDS.round} s, seed #{SEED}: #{pieces.map { |name, count| "#{count} × #{name}" }.join(", ")}; #{failures.size} failed"
    flunk failures.join("\n\n") unless failures.empty?
  end if SECONDS

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Those that this machine can have.
  def recorders
    Pitwall.load_native!
    Pitwall::Native.syscall_dispatch ? RECORDERS.reject { |recorder| recorder[:collectors]&.key?("syscalls") } : RECORDERS
  end

  def log(line)
    ENV["PITWALL_SOAK_LOG"]&.then { |path| File.write(path, "#{Time.now.strftime("%T")} #{RUBY_VERSION} #{line}\n", mode: "a") }
  end

  # One that fails does not end the soak.
  def logged(failures)
    began = now
    resident = yield
    log("#{@where}: ok in #{(now - began).round(1)} s#{", resident KB #{resident.join(" -> ")}" if resident}")
  rescue Minitest::Assertion, StandardError => error
    failures << "#{@where}: #{error.class}: #{error.message}\n#{error.backtrace.grep(/test/).first(2).join("\n")}"
    log("#{@where}: FAILED in #{(now - began).round(1)} s: #{error.message.tr("\n", " ")[0, 300]}")
  end

  def environment_of(mn) = { "MALLOC_ARENA_MAX" => "2", **(mn ? MN : {}) }

  def assert_lived(result)
    assert result.status.success?, "#{@where}: #{result.status}\n#{result.out.lines.last(3).join}\n#{result.err[0, 6000]}"
    assert_equal "end", result.out.lines.last&.chomp, @where
  end

  # @return [Array<Integer>] resident KB in the middle and at the end
  def piece_of_sessions(recorder, mn, seed)
    loads = loads_for(recorder, mn, growing: (seed % 4).zero?)
    result = attempt(program(loads, seed), env: environment_of(mn), options: ["-W0"], patience: 120 + PIECE * 10)
    assert_lived(result)
    before, after = result.out.lines.grep(/^resources /).map { |line| line.split.drop(1).map(&:to_i) }
    refute_nil after, @where
    # Ruby 3.3 itself keeps every thread that ended under M:N: 300 MB in four seconds of short threads, nothing recorded.
    grows = (loads.keys & GROWING).any? || (mn && RUBY_VERSION < "3.4")
    assert_operator after[0] - before[0], :<, GROWTH_KB, "#{@where}: resident KB #{before[0]} → #{after[0]}" unless grows
    assert_operator after[1], :<=, before[1], "#{@where}: descriptors"
    assert_operator after[2], :<=, before[2], "#{@where}: timers"
    assert_recordings(result.out.lines.grep(/^session /).map { |line| line.split[1, 2] }, @where, moved: loads.key?(:compaction))
    [before[0], after[0]]
  ensure
    remove_recordings
  end

  def remove_recordings = Dir.children(@dir).grep(/\As\d+.*\.pit\z/).each { |name| File.delete(file(name)) }

  # One recording under loads, and SIGKILL at any moment: all up to the last flush is there, and nothing that is wrong.
  def piece_of_killed(recorder, mn, seed)
    random = Random.new(seed)
    loads = loads_for(recorder, mn, growing: false)
    deadline = now + PIECE
    n = 0
    until now > deadline
      source = "#{definitions(loads, random.rand(1_000_000))}\nstart('s#{n}.pit', flush_ns: 50_000_000)\nputs :go\nloop { send(:\"load_\#{LOADS.sample(random: RANDOM)}\") }"
      File.write(file("stdout"), "")
      pid = Process.spawn(environment(environment_of(mn)), *command(source, options: ["-W0"]), in: File::NULL, out: file("stdout"), err: file("stderr"), chdir: @dir, pgroup: true)
      patience = now + 60
      sleep 0.005 until File.size?(file("stdout")) || (ended = Process.wait2(pid, Process::WNOHANG)) || now > patience
      started = now
      sleep random.rand(1.5)
      ended ||= Process.wait2(pid, Process::WNOHANG)
      lived = now - started
      Process.kill(:KILL, -pid) rescue nil # its children as well
      Process.wait(pid) unless ended
      assert_nil ended, "#{@where}: it ended by itself: #{ended&.last}\n#{File.read(file("stderr"))[0, 6000]}"
      assert_reads_up_to_the_last_flush(file("s#{n}.pit"), lived)
      n += 1
    end
    nil
  ensure
    remove_recordings
  end

  def assert_reads_up_to_the_last_flush(path, lived)
    recording = Pitwall::Record.read(path)
    segment = recording.segments.fetch(0)
    assert_nil segment.tail, @where
    known = %i[truncated unstopped recording] # the last: a child that had just begun is not gone yet
    assert_empty recording.warnings.reject { |warning| known.include?(warning.code) }, @where
    return if lived < 1.2 # a flush may be late on a busy machine

    assert segment.stats, "#{@where}: no flush in #{lived} s"
    elapsed = segment.stat("elapsed_ns")
    assert_operator elapsed, :>, 0, @where
    threads_of(segment).each { |row| assert_operator row.wall, :<=, elapsed + 100_000_000, "#{@where}: wall of #{row.name}" }
  end

  # Files that follow each other all the while, in a folder that keeps its bound.
  def piece_of_continuous(_recorder, mn, seed)
    loads = loads_for({ collectors: BURSTS }, mn, growing: false).except(:ractors) # beside another thread, as continuous recording is, they hang Ruby
    room = 16 << 20
    result = attempt(<<~RUBY, env: environment_of(mn), options: ["-W0"], patience: 120 + PIECE * 10)
      #{definitions(loads, seed)}
      Pitwall.continuous(dir: "d", rate: 5000, max_bytes: #{room}, mode: #{Stress::MODES[seed % 3].dump})
      limit = now + #{PIECE}
      n = 0
      while now < limit
        send(:"load_\#{LOADS.sample(random: RANDOM)}")
        Pitwall::Collect::Continuous.request(%i[rotate rotate toggle start].sample(random: RANDOM)) if (n += 1) % 20 == 0
      end
      puts :end
      exit!(0)
    RUBY
    assert_lived(result)
    files = Dir[file("d/*.pit")]
    refute_empty files, @where
    assert_operator files.sum { |path| File.size(path) }, :<=, room, @where
    files.each { |path| assert_operator Pitwall::Record.read(path).segments.size, :>=, 1, "#{@where}: #{path}" }
    nil
  ensure
    FileUtils.rm_rf(file("d"))
  end

  def loads_for(recorder, mn, growing:)
    loads = LoadsTest.loads
    loads = loads.reject { |name, _| RUBY_HANGS.include?(name) } if mn
    loads = loads.reject { |name, _| SLOW_TRACED.include?(name) } unless recorder.fetch(:collectors, {}).empty?
    loads.select { |name, _| growing || !GROWING.include?(name) }
  end

  def definitions(loads, seed)
    <<~RUBY
      RANDOM = Random.new(#{seed})
      LOADS = #{loads.keys.inspect}
      #{loads.map { |name, load| "#{load[:before]}\ndef load_#{name}\n#{load[:source]}\nend" }.join("\n")}
    RUBY
  end

  def program(loads, seed)
    <<~RUBY
      #{definitions(loads, seed)}
      def resources
        3.times { GC.start }
        timers = File.read("/proc/self/timers").scan(/^ID:/).size rescue 0
        puts "resources \#{File.read("/proc/self/status")[/VmRSS:\\s+(\\d+)/, 1]} \#{Dir.children("/proc/self/fd").size} \#{timers}"
      end
      limit = now + #{PIECE}
      halfway = now + #{PIECE / 2} # by then allocators have the heap that these loads need
      n = 0
      while now < limit
        resources if halfway && now > halfway && (halfway = nil).nil?
        load = LOADS.sample(random: RANDOM)
        seconds = RANDOM.rand(0.4)
        puts "session s\#{n}.pit \#{load}"
        record("s\#{n}.pit", flush_ns: 50_000_000) do
          until_then = now + seconds
          send(:"load_\#{load}")
          send(:"load_\#{load}") while now < until_then
        end
        n += 1
      end
      resources if halfway
      resources
      puts :end
      exit!(0) # under M:N, Ruby 3.4.11 itself crashes in its own end now and then
    RUBY
  end

  # @param moved [Boolean] objects were moved, at any time
  def assert_recordings(sessions, where, moved:)
    ractors = sessions.index { |_, load| load == "ractors" } || sessions.size # from then on their ends can come at any time
    sessions.each_with_index do |(name, load), at|
      @where_in = "#{where}, #{name} #{load}"
      recording = read(name)
      assert_empty recording.warnings, @where_in
      recording.segments.each { |segment| assert_whole(segment, load, moved, at > ractors) }
    rescue Minitest::Assertion => error
      raise error.class, "#{@where_in}: #{error.message}", error.backtrace
    end
  end

  # What adds up in each kind.
  def assert_whole(segment, load, moved, ractors)
    assert_sane(segment)
    if segment.traced?
      assert_equal 0, segment.tracing["lost_calls"]
      assert_operator segment.calls.sum(&:calls), :>, 0
      # In system calls, which wait without the GVL, CPU time is spent as well.
      segment.calls.each { |row| assert_operator row.cpu, :<=, row.wall + row.wait + 20_000_000, row.inspect } if segment.tracing["cpu"]
    end
    return unless segment.allocation_totals

    totals = segment.allocation_totals
    assert_balanced(segment, moved: moved, ractors: ractors) unless totals.bursts? || totals.flags != 0 || load == "compaction"
  end
end

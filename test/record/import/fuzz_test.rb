# frozen_string_literal: true

require_relative "../../test_helper"
require "timeout"
require_relative "../../support/imported"

# Changed real files are imported, or refused in one line. Whatever comes out is a recording that the reader takes.
class ImportFuzzTest < Minitest::Test
  include Imported

  FILES = %w[stackprof/wall-raw.json stackprof/wall.json stackprof/wall.dump stackprof/cpu-raw.dump stackprof/object-raw.dump
             vernier/threads.json vernier/retained.json vernier/objects.json.gz memory_profiler/results.json
             ruby_prof/wall.callgrind callgrind/plain.out callgrind/jumps.out].freeze
  ROUNDS = 60
  VALUES = [nil, true, -1, 0, 1.5, -0.5, 1e300, 2**60, 2**200, "", "x" * 100, "\u0000", "NaN", [].freeze, {}.freeze, [1].freeze, [[1]].freeze, { "a" => 1 }.freeze].freeze
  # A hang is a failure. No import of these files takes seconds.
  HANG = 120

  def test_changed_bytes
    FILES.each do |file|
      whole = real(file)
      ROUNDS.times { |seed| try(bytes(whole, Random.new(seed)), "#{file}, bytes, seed #{seed}") }
    end
  end

  def test_cut_files
    FILES.each do |file|
      whole = real(file)
      20.times { |seed| try(whole.byteslice(0, Random.new(seed).rand(whole.bytesize)), "#{file}, cut, seed #{seed}") }
    end
  end

  def test_changed_values
    FILES.grep(/json/).each do |file|
      text = file.end_with?(".gz") ? Zlib.gunzip(real(file)) : real(file)
      ROUNDS.times do |seed|
        random = Random.new(seed)
        data = JSON.parse(text)
        (1 + random.rand(3)).times { change(data, random) }
        try(JSON.generate(data), "#{file}, values, seed #{seed}")
      end
    end
    FILES.grep(/dump/).each do |file|
      ROUNDS.times do |seed|
        random = Random.new(seed)
        data = Marshal.load(real(file)) # rubocop:disable Security/MarshalLoad
        change(data, random)
        try(Marshal.dump(data), "#{file}, values, seed #{seed}")
      end
    end
  end

  def test_changed_words
    FILES.grep(/callgrind/).each do |file|
      whole = real(file)
      ROUNDS.times do |seed|
        random = Random.new(seed)
        words = whole.split(/(\s+|=)/)
        (1 + random.rand(4)).times { words[random.rand(words.size)] = ["", "-5", "+9", "*", "0xff", "9" * 30, "(1)", "(99999)", "fn=", "calls=", "\n", "nan", words.sample(random: random)].sample(random: random) }
        try(words.join, "#{file}, words, seed #{seed}")
      end
    end
  end

  private

  def try(bytes, what)
    out = Timeout.timeout(HANG) { Imported.recording(bytes) }
    recording = RandomRecording.read(out)
    Pitwall::Analyse::CallTreeBuilder.build(recording.segments, weights: %i[wall cpu captures objects])
  rescue Pitwall::BadRecording => e
    assert_equal 1, e.message.lines.size, "#{what}: #{e.message}"
  rescue StandardError => e
    flunk "#{what}: #{e.class}: #{e.message}\n#{e.backtrace.first(8).join("\n")}"
  end

  def bytes(whole, random)
    bytes = whole.dup
    (1 + random.rand(8)).times { bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) }
    bytes
  end

  # Puts another value at a random place.
  def change(data, random)
    loop do
      keys = data.is_a?(Hash) ? data.keys : (0...data.size).to_a
      return if keys.empty? || data.frozen?

      key = keys.sample(random: random)
      value = data[key]
      if (value.is_a?(Hash) || value.is_a?(Array)) && !value.empty? && random.rand(5).positive? then data = value
      else return data[key] = VALUES.sample(random: random)
      end
    end
  end
end

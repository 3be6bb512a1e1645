# frozen_string_literal: true

require "tempfile"
require_relative "recording_builder"
require "pitwall/record"

# Random recordings, each made from a seed. `samples` has the samples that the recording holds.
class RandomRecording
  METHODS = Array.new(9) do |i|
    name = "M#{i % 7}#m#{i}"
    i % 4 == 3 ? [name, "", 0, nil, 1] : [name, "/app/#{i % 3}.rb", i * 10, nil, 0]
  end
  FRAMES = METHODS + [["(marking)", "", 0, nil, 2]]

  Sample = Struct.new(:segment, :thread, :state, :stack, :wall, :cpu, :captures)

  attr_reader :samples, :bytes

  def initialize(seed, segments: 2, rows: 60, compress: false)
    random = Random.new(seed)
    @samples = []
    builder = RecordingBuilder.new
    segments.times do |number|
      builder.segment(pid: 100 + number, unit_ns: [1, 1000][number % 2], compress: compress) do |writer|
        2.times { |thread| writer.thread(thread + 1, "t#{thread + 1}") }
        rows.times do
          sample = random_sample(random, number)
          writer.row(**sample.to_h.reject { |field,| field == :segment })
          @samples << sample
          writer.flush if random.rand(20).zero?
        end
        sample = Sample.new(number, 1, 2, stack(random), random.rand(500), random.rand(9), 0)
        writer.open(thread: 1, state: 2, stack: sample.stack, wall: sample.wall, cpu: sample.cpu)
        @samples << sample
        sites(writer, random)
        5.times do |at|
          writer.collection(start: at * 1000, marking: 100 * at, sweeping: 50, cause: at, major_cause: at,
                            majors: at % 2, allocated: 9, living: at)
        end
      end
    end
    @bytes = builder.bytes
  end

  # [[stack, weight], …], the oracles' input. A weight is in ns, or a number of captures.
  def weighed(weight, samples = @samples)
    samples.map { |sample| [sample.stack, sample[weight] * (weight == :captures ? 1 : [1, 1000][sample.segment % 2])] }
  end

  def read = RandomRecording.read(@bytes)

  def self.read(bytes, **options)
    Tempfile.create(["recording", ".pit"]) do |file|
      file.binmode
      file.write(bytes)
      file.flush
      Pitwall::Record.read(file.path, **options)
    end
  end

  private

  def random_sample(random, segment)
    Sample.new(segment, random.rand(1..3), random.rand(4), stack(random),
               random.rand(3).zero? ? 0 : random.rand(5000), random.rand(900), random.rand(3))
  end

  # Sites 1 to 4 have no stack, type or class.
  def sites(writer, random)
    10.times do |at|
      count = random.rand(1..50)
      freed = random.rand(count + 1)
      counters = [count, random.rand(freed + 1), freed, freed * 2, 1, 3, count * 40, count * 60,
                  count - freed, random.rand(5000), (count - freed) * 60]
      placed = at >= 4
      writer.site(at + 1, stack: placed ? stack(random) : [], type: placed ? random.rand(1..12) : 0,
                          class_name: placed ? "C#{random.rand(4)}" : "", counters: counters)
    end
    3.times { |at| writer.equal_strings(at / 2 + 1, 5 + at, 12, 2 + at, 100) }
  end

  def stack(random)
    Array.new(random.rand(1..8)) do
      frame = FRAMES[(random.rand**1.5 * FRAMES.size).to_i].dup
      frame[3] = frame[1].empty? ? 0 : frame[2] + random.rand(3)
      frame
    end
  end
end

# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"
require_relative "../../support/traced_recording"
require "pitwall/show"

# What Pitwall exports and imports again has the same weights.
class ImportRoundTripTest < Minitest::Test
  include Imported

  Export = Pitwall::Show::Export
  Selection = Pitwall::Analyse::Selection

  def exported(recording, format, weight)
    out = StringIO.new("".b)
    kind = Export[format]
    if kind.folds?
      query = Pitwall::Analyse::Report::Query.new(weight: weight, selection: Selection.all)
      kind.new(Pitwall::Analyse::Report.new(recording.segments, query)).write(out)
    else
      kind.new(recording.segments, weight, selection: Selection.all).write(out)
    end
    out.string
  end

  # Yields random recordings while their files are there: time lines read them again.
  def each_random(count)
    count.times do |seed|
      Tempfile.create(["random", ".pit"]) do |file|
        file.binmode
        file.write(RandomRecording.new(seed).bytes)
        file.flush
        yield Pitwall::Record.read(file.path), "seed #{seed}"
      end
    end
  end

  # Processes and threads with the sums of each.
  def threads(recording, weight)
    recording.segments.each_with_object(Hash.new(0)) do |segment, sums|
      segment.tallies.each do |tally|
        tally.each { |_, wall, cpu, captures| sums[[segment.header.pid, segment.thread(tally.thread_id).title]] += { wall: wall * segment.unit_ns, cpu: cpu * segment.unit_ns, captures: captures }[weight] }
      end
    end.reject { |_, sum| sum.zero? }
  end

  def test_pprof_keeps_all_weights_threads_and_processes
    each_random(10) do |recording, seed|
      back = imported(exported(recording, "pprof", :wall))
      %i[wall cpu captures objects bytes gc].each { |weight| assert_equal stacks(recording, weight), stacks(back, weight), "#{seed} #{weight}" }
      %i[wall cpu captures].each { |weight| assert_equal threads(recording, weight), threads(back, weight), "#{seed} #{weight}" }
    end
  end

  def test_pprof_keeps_exact_calls
    Tempfile.create do |file|
      file.binmode
      file.write(TracedRecording.bytes)
      file.flush
      recording = Pitwall::Record.read(file.path)
      back = imported(exported(recording, "pprof", :wall))
      %i[calls wall wait].each { |weight| assert_equal stacks(recording, weight), stacks(back, weight), weight }
      assert back.segments.first.traced?
    end
  end

  def test_speedscope_keeps_a_weight
    each_random(5) do |recording, seed|
      %i[wall cpu captures].each do |weight|
        back = imported(exported(recording, "speedscope", weight))
        assert_equal stacks(recording, weight), stacks(back, weight == :captures ? :captures : :wall), "#{seed} #{weight}"
      end
    end
  end

  def test_collapsed_stacks_keep_a_weight
    each_random(5) do |recording, seed|
      { wall: "wall", cpu: "cpu", captures: "samples", objects: "objects", bytes: "bytes" }.each do |weight, type|
        back = imported(exported(recording, "collapsed", weight), type: type)
        assert_equal stacks(recording, weight), stacks(back, weight), "#{seed} #{weight}"
      end
    end
  end
end

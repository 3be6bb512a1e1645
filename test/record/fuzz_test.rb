# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/syscalls_recording"
require_relative "../support/traced_recording"
require_relative "../support/drawn_view"
require "pitwall/analyse"
require "pitwall/show"
require "stringio"

# Pitwall reads a damaged file, or refuses it with an error of one line. The damage has a seed, so a failure repeats.
class FuzzTest < Minitest::Test
  VARIANTS = 2200
  # The views draw one recording in 8: drawing takes longer than reading.
  USED = 8

  def test_a_damaged_file_is_read_or_refused
    random = Random.new(20_261_121)
    plain = RandomRecording.new(1, rows: 25).bytes
    compressed = RandomRecording.new(2, rows: 25, compress: true).bytes
    originals = [plain, compressed, TracedRecording.bytes, SyscallsRecording.bytes]
    outcomes = Hash.new(0)
    before = resident_kib # includes the memory of tests that ran earlier in this process
    Dir.mktmpdir do |dir|
      path = File.join(dir, "fuzz.pit")
      VARIANTS.times do |number|
        File.binwrite(path, variant(originals, random))
        outcomes[outcome(path, number)] += 1
        outcomes[outcome(path, number, salvage: true)] += 1
      end
    end
    assert_operator outcomes[:refused], :>, VARIANTS / 20, outcomes
    assert_operator outcomes[:read] + outcomes[:warned], :>, VARIANTS / 20, outcomes
    assert_operator resident_kib - before, :<, 400 * 1024
  end

  # The file consists of chunk heads whose checksums are wrong. The search for the next valid chunk must not compute a
  # checksum of the rest of the file at each head.
  def test_a_file_of_false_starts_ends_soon
    start = ["SAMP", 0, "\0\0\0", 1 << 20, 1 << 20, 7].pack("a4Ca3V3")
    bytes = RecordingBuilder::MAGIC + start * 200_000
    started = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    assert_raises(Pitwall::BadRecording) { RandomRecording.read(bytes) }
    RandomRecording.read(bytes, salvage: true)
    assert_operator Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - started, :<, 20
  end

  private

  def variant(originals, random)
    bytes = originals.sample(random: random).dup
    random.rand(1..4).times do
      at = random.rand(bytes.bytesize + 1)
      case random.rand(8)
      when 0 then bytes = bytes.byteslice(0, at)
      when 1 then bytes[at, 0] = random.bytes(random.rand(1..40))
      when 2 then bytes[at, random.rand(1..60)] = ""
      when 3 then bytes[at, 0] = originals.sample(random: random).byteslice(random.rand(500), random.rand(900))
      when 4 then reseal(bytes, random)
      when 5 then reseal(bytes, random, fill: true)
      else bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) unless bytes.empty?
      end
      bytes = +"P" if bytes.empty?
    end
    bytes
  end

  # Changes a payload and corrects its checksum. Only the checks of bounds can find such damage.
  def reseal(bytes, random, fill: false)
    heads = bytes.enum_for(:scan, /[A-Z]{4}[\x00\x01]\x00\x00\x00/n).map { Regexp.last_match.begin(0) }
    at = heads.sample(random: random)
    return if at.nil? || at + 20 > bytes.bytesize

    stored = bytes.byteslice(at + 8, 4).unpack1("V")
    payload = bytes.byteslice(at + 20, stored)
    return if payload.nil? || payload.bytesize < [stored, 1].max || stored > bytes.bytesize

    random.rand(1..3).times { payload.setbyte(random.rand(payload.bytesize), fill ? 0xff : random.rand(256)) }
    bytes[at + 20, stored] = payload
    bytes[at + 16, 4] = [Zlib.crc32(payload)].pack("V")
  end

  def outcome(path, number, **options)
    recording = Pitwall::Record.read(path, **options)
    use(recording) if (number % USED).zero?
    recording.warnings.empty? ? :read : :warned
  rescue Pitwall::BadRecording => e
    assert_equal 1, e.message.lines.size, "variant #{number}"
    assert_operator e.message.bytesize, :<, 400
    :refused
  rescue StandardError, SystemStackError, NoMemoryError => e
    flunk "variant #{number} #{options}: #{e.full_message(highlight: false)}"
  end

  # Draws the views of a recording that was read.
  def use(recording)
    report = Pitwall::Analyse::Report.new(recording.segments)
    assert_equal report.total, report.flat.sum(&:own)
    Pitwall::Analyse::Findings.of(recording.segments)
    Pitwall::Analyse::OnlyMine.new(Pitwall::Analyse::Origin.new).call(recording.segments)
    DrawnView.drawn(report, warnings: recording.warnings.map(&:message))
    DrawnView.json(report, :gc, :gc_cost)
    %i[gc gc_cost].each { |view| DrawnView.body(report, view) }
    use_allocations(recording)
    recording.segments.each do |segment|
      segment.each_syscall { |call| assert_kind_of String, call.name } && segment.syscall_totals
    end
    Pitwall::Show::Export::Speedscope.new(recording.segments, :wall, selection: report.query.selection).write(+"")
  end

  def use_allocations(recording)
    found = Pitwall::Analyse::Allocations.new(recording.segments)
    return unless found.any?

    summary = Pitwall::Analyse::Summary.new(found.segments)
    view = { by: %i[path line class type method stack], sort: :bytes }
    Pitwall::Show::AllocationsText.new(found, summary, **view, hints: Pitwall::Views::Hints).to_s
    Pitwall::Show::AllocationsJson.new(found, summary, **view).to_s
    Pitwall::Show::AllocationsMarkdown.new(found, summary, **view).to_s
  end

  def resident_kib = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
end

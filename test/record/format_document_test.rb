# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/documents/document"
require_relative "../support/imported"
require_relative "../support/syscall_dispatch"
require "json"
require "zlib"
require "pitwall/record"
require "pitwall/record/lz4"

# doc/record-format.md is enough to read a recording: a reader that knows nothing but its tables reads what the
# extension writes, to the last byte of each chunk.
class FormatDocumentTest < Minitest::Test
  include CommandLine
  include SyscallDispatch

  DOCUMENT = File.read(File.join(Checkout::ROOT, "doc/record-format.md"), encoding: "UTF-8")
  # Of each section: [name, type, text of the row] of its first table.
  SECTIONS = DOCUMENT.scan(/^### ([A-Z]{4})$(.*?)(?=^##|\z)/m).to_h do |type, text|
    rows = text[/^\|.*?(?=^\n)/m].lines.drop(2).map { |row| row.split("|").map(&:strip).drop(1) }
    [type, rows.map { |name, kind, *rest| [name, kind, rest.join(" ")] }]
  end
  JSON_TYPES = %w[HEAD STAT TRAC CHSM CHDF BOOT TAIL].freeze

  PROGRAM = <<~'RUBY'
    2.times { require "pitwall" }
    KEPT = []
    def work(seconds)
      finish = Process.clock_gettime(1) + seconds
      KEPT << "text #{KEPT.size % 7}" * 9 << [1] while Process.clock_gettime(1) < finish
    end
    Pitwall.request(route: "a") { Pitwall.label(tenant: "b") { work(0.03) } }
    Thread.new { Thread.current.name = "worker"; sleep 0.02 }.join
    12.times { GC.start; work(0.01) }
    File.read(__FILE__)
  RUBY

  def test_every_type_has_fields
    assert_operator SECTIONS.size, :>=, 29
    SECTIONS.each { |type, fields| refute_empty fields, type }
  end

  def test_samples_requests_and_collections
    types = read(record("profile"))
    assert_empty %w[HEAD ROOM STRS FRAM NODE THRD SAMP OPEN LABL MARK WORK CWRK CMRK GCEV STAT TAIL] - types
  end

  def test_tests
    File.write(file("suite.rb"), <<~RUBY)
      ARGV.push("--no-plugins") # those of another minitest beside this one
      require "minitest/autorun"
      class SuiteTest < Minitest::Test
        def test_a = assert(sleep(0.01))
      end
    RUBY
    assert_includes read(record("profile", program: "suite.rb")), "TEST"
  end

  def test_imports
    types = read(Imported.recording("main;work 7\n"))
    assert_empty %w[HEAD STRS FRAM NODE THRD SAMP STAT TAIL] - types
  end

  def test_objects
    assert_empty %w[SITE ALLO GCWK LIVE BORN HOLD] - read(record("allocations", "--growth", "--holders"))
    assert_includes read(record("allocations", "--strings")), "DUPS"
  end

  def test_calls
    assert_empty %w[CALL TRAC] - read(record("trace"))
  end

  def test_caches
    assert_empty %w[CHNG CHSM CHDF] - read(record("caches", "--definitions"))
  end

  def test_boots
    assert_empty %w[LOAD AGIN BOOT] - read(record("boot"))
    assert_includes read(record("boot", "--used")), "USED"
  end

  def test_system_calls
    skip_without_dispatch
    assert_empty %w[SYSC SYST] - read(record("syscalls"))
  end

  # Queries need a database library; the tests' own writer follows the same document.
  def test_recordings_of_the_tests_own_writer
    require_relative "../support/documents/sandbox"
    found = DocumentedSandbox.open("") { read(File.binread("x.pit"), json: false) }
    assert_empty SECTIONS.keys - JSON_TYPES - %w[ROOM OPEN DUPS HOLD TAIL OBJS CHNG CWRK CMRK LOAD AGIN USED] - found
    oldest = File.binread(File.join(Checkout::ROOT, "test/fixtures/recordings/v1.pit"))
    assert_includes read(oldest, json: false), "SAMP"
  end

  def test_shared_objects
    require_relative "../support/recording_builder"
    bytes = RecordingBuilder.build { |segment| segment.shared_object("/lib/libx.so", "b2c1", names_from: 2) }
    assert_includes read(bytes, json: false), "OBJS"
  end

  def test_a_payload_that_is_not_as_documented_is_found
    assert_raises(Minitest::Assertion) { decode("WORK", "\x01\x01\x01\x01\x01") }
    assert_raises(Minitest::Assertion) { decode("WORK", "\x01\x01\x01\x01\x01\x01\x01\x01") }
    decode("WORK", "\x01\x01\x01\x01\x01\x01\x01")
  end

  private

  def record(verb, *options, program: "x.rb")
    File.write(file("x.rb"), PROGRAM)
    command = [RUBY, "-I#{Checkout::ROOT}/lib", "-r#{Checkout::ROOT}/script/checkout", "-e",
               "Checkout.use_test_gems; load '#{program}'"]
    result = pitwall(verb, *options, "--record", "r.pit", "--", *command)
    assert result.status.success?, result.err
    File.binread(file("r.pit"))
  end

  # Types of the chunks, each decoded.
  def read(bytes, json: true)
    types = []
    at = 0
    while at < bytes.bytesize
      at += 10 if bytes.byteslice(at, 10) == "PITWALL 1\n".b
      type, flags, zero, stored, raw, crc = bytes.byteslice(at, 20).unpack("a4Ca3V3")
      payload = bytes.byteslice(at + 20, stored)
      assert_equal ["\0\0\0".b, crc], [zero, Zlib.crc32(payload)]
      payload = Pitwall::Record.const_get(:LZ4).decompress(payload, raw) if flags == 1
      JSON_TYPES.include?(type) ? (keys(type, JSON.parse(payload)) if json) : decode(type, payload)
      types << type
      at += 20 + stored
    end
    types.uniq
  end

  # Every key is documented, and every documented key is there. An import has fewer keys, a recording beside perf more.
  def keys(type, object)
    imported = @imported ||= object["collector"] == "import"
    rows = SECTIONS.fetch(type).select { |row| imported || !row.last.include?("only of imports") }
    rows = rows.reject { |row| row.last.include?("only with `--perf`") } unless object.key?("perf_samples")
    documented = rows.flat_map { |name,| name.scan(/`(\w+)`/).flatten }
    assert_empty object.keys - documented, type
    assert_empty documented - object.keys, type unless imported
  end

  def decode(type, payload)
    payload = payload.b
    rows = nil
    rest = SECTIONS.fetch(type).inject(payload) do |left, (name, kind, text)|
      next left if left.empty? && text.include?("optional")

      value, left = take(kind, left, rows, "#{type} #{name}")
      rows = value if name == "n"
      left
    end
    assert_empty rest, "#{type}: bytes after its last field"
  end

  # [value, what is left]
  def take(kind, bytes, rows, where)
    case kind
    when "int"
      length = bytes.index(/[\x00-\x7f]/n)
      refute_nil length, "#{where}: ends"
      [bytes.unpack1("w"), bytes.byteslice(length + 1..)]
    when "col", "run"
      size, left = take("int", bytes, rows, where)
      assert_operator size, :<=, left.bytesize, where
      values = left.byteslice(0, size).unpack("w*")
      assert_equal rows, kind == "col" ? values.size : values.each_slice(2).sum { |_, count| count }, where
      [values, left.byteslice(size..)]
    when "u32 LE" then [bytes.unpack1("V"), bytes.byteslice(4..)]
    when "u64 LE" then [bytes.unpack1("Q<"), bytes.byteslice(8..)]
    when "bytes" then [bytes, ""]
    else flunk "#{where}: type #{kind} is not among the types of fields"
    end
  end
end

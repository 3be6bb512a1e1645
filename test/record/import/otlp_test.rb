# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"
require "pitwall/record/messages"

class ImportOtlpTest < Minitest::Test
  include Imported

  Otlp = Pitwall::Record::Messages::Otlp
  STRINGS = ["", "samples", "count", "cpu", "nanoseconds", "main", "/app/shop.rb", "Shop#sum", "profile.frame.type", "ruby", "native", "thread.name", "worker",
             "libz.so.1", "/usr/lib/libz.so.1", "route", "thread.id", "off_cpu", "each", "days", "process.executable.build_id.gnu", "b2c1", "pid"].freeze
  AT = STRINGS.each_with_index.to_h

  def any(value)
    Otlp::AnyValue.new({ String => :string_value, Integer => :int_value }.fetch(value.class) => value)
  end

  def attribute(key, value) = Otlp::KeyValueAndUnit.new(key_strindex: AT.fetch(key), value: any(value))
  def function(name, path = "", line = 0) = Otlp::Function.new(name_strindex: AT.fetch(name), filename_strindex: AT.fetch(path), start_line: line)
  def line(function, line = 0) = Otlp::Line.new(function_index: function, line: line)

  # main → Shop#sum → each; main → native code without a name
  def dictionary(**changes)
    Otlp::ProfilesDictionary.new(
      string_table: STRINGS, function_table: [Otlp::Function.new, function("main", "/app/shop.rb", 1), function("Shop#sum", "/app/shop.rb", 5), function("each")],
      mapping_table: [Otlp::Mapping.new, Otlp::Mapping.new(filename_strindex: AT["/usr/lib/libz.so.1"], memory_start: 0x7000, file_offset: 0x1000, attribute_indices: [6])],
      location_table: [Otlp::Location.new, Otlp::Location.new(lines: [line(1, 3)], attribute_indices: [1]), Otlp::Location.new(lines: [line(3), line(2, 7)], attribute_indices: [1]),
                       Otlp::Location.new(mapping_index: 1, address: 0x7f40, attribute_indices: [2])],
      link_table: [Otlp::Link.new(trace_id: "\0".b * 16, span_id: "\0".b * 8), Otlp::Link.new(trace_id: "\x0a".b * 16, span_id: "\xb7".b * 8)],
      attribute_table: [Otlp::KeyValueAndUnit.new, attribute("profile.frame.type", "ruby"), attribute("profile.frame.type", "native"), attribute("thread.name", "worker"),
                        attribute("route", "orders#show"), attribute("thread.id", 17), attribute("process.executable.build_id.gnu", "b2c1")],
      stack_table: [Otlp::Stack.new, Otlp::Stack.new(location_indices: [2, 1]), Otlp::Stack.new(location_indices: [3, 1])], **changes
    )
  end

  def sample(stack, values = [1], attributes: [3, 5], link: 0, times: [])
    Otlp::Sample.new(stack_index: stack, values: values, attribute_indices: attributes, link_index: link, timestamps_unix_nano: times)
  end

  def profile(samples, type = %w[samples count], **fields)
    Otlp::Profile.new(sample_type: Otlp::ValueType.new(type_strindex: AT.fetch(type[0]), unit_strindex: AT.fetch(type[1])), samples: samples, **fields)
  end

  def resource(*profiles, **attributes)
    pairs = attributes.map { |key, value| Otlp::KeyValue.new(key: key.to_s, value: any(value)) }
    Otlp::ResourceProfiles.new(resource: Otlp::Resource.new(attributes: pairs), scope_profiles: [Otlp::ScopeProfiles.new(profiles: profiles)])
  end

  def data(*resources, dictionary: self.dictionary) = Otlp::ProfilesData.new(resource_profiles: resources, dictionary: dictionary).to_proto

  # As opentelemetry-ebpf-profiler writes it: a resource a process, moments without values.
  def test_moments_count_one_each
    period = { time_unix_nano: 1_790_000_000_000_000_000, duration_nano: 5_000_000_000, period: 52_631_578, period_type: Otlp::ValueType.new(type_strindex: AT["cpu"], unit_strindex: AT["nanoseconds"]) }
    bytes = data(resource(profile([sample(1, [], times: [1, 2, 3]), sample(2, [], times: [4])], **period), "process.pid": 42, "process.executable.name": "ruby"),
                 resource(profile([sample(1, [], times: [5])], **period), profile([sample(1, [700], times: [6])], %w[off_cpu nanoseconds], **period), "process.pid": 43))
    recording = imported(bytes)
    assert_equal({ %w[main Shop#sum each] => 4, %w[main libz.so.1+0x1f40] => 1 }, stacks(recording, :captures))
    assert_equal({ %w[main Shop#sum each] => 700 }, stacks(recording, :wall))
    first, second = recording.segments
    assert_equal [42, "ruby", 52_631_578, 1_790_000_000_000_000_000, 5_000_000_000], [*first.header.then { |head| [head.pid, head.program, head.interval_ns, head.started_at_ns] }, first.stat("elapsed_ns")]
    assert_equal 43, second.header.pid
    assert_equal "worker", first.thread(17).name
  end

  def test_frames
    segment = imported(data(resource(profile([sample(1), sample(2), sample(0)])))).segments.first
    frames = segment.frames.each_value.to_h { |frame| [frame.name, [frame.path, frame.first_line, frame.kind]] }
    assert_equal({ "main" => ["/app/shop.rb", 1, 0], "Shop#sum" => ["/app/shop.rb", 5, 0], "each" => ["", 0, 1],
                   "libz.so.1+0x1f40" => ["/usr/lib/libz.so.1", 0, 3], "(no stack)" => ["", 0, 4] }, frames)
    assert_equal [0, 3, 7], segment.lines.uniq.sort
    assert_equal [["/usr/lib/libz.so.1", "b2c1"]], (segment.shared_objects.map { |object| [object.path, object.build_id] })
  end

  def test_labels_and_links
    tallies = imported(data(resource(profile([sample(1, attributes: [3, 4], link: 1)])))).segments.first.then { |segment| segment.tallies.map { |tally| segment.labels(tally.label_id) } }
    assert_equal [{ "route" => "orders#show", "trace_id" => "0a" * 16, "span_id" => "b7" * 8 }], tallies
  end

  def test_one_figure_of_several
    bytes = data(resource(profile([sample(1, [3])]), profile([sample(1, [900])], %w[cpu nanoseconds])))
    assert_equal({ %w[main Shop#sum each] => 3 }, stacks(imported(bytes), :captures))
    assert_equal 1, imported(bytes).segments.first.row_count, "figures of one stack are one row"
    assert_empty stacks(imported(bytes, type: "cpu"), :captures)
    assert_match(/has no figure heap: it has samples \(count\), cpu \(nanoseconds\)\z/, refused(bytes, type: "heap"))
  end

  def test_the_request_that_carries_profiles
    data = Otlp::ProfilesData.decode(data(resource(profile([sample(1)]))))
    request = Otlp::ExportProfilesServiceRequest.new(resource_profiles: data.resource_profiles.to_a, dictionary: data.dictionary)
    assert_equal({ %w[main Shop#sum each] => 1 }, stacks(imported(request.to_proto), :captures))
    assert_equal({ %w[main Shop#sum each] => 1 }, stacks(imported(Zlib.gzip(request.to_proto)), :captures))
  end

  # The first bytes of a small file may look like text.
  def test_pprof_and_otlp_are_not_taken_for_each_other
    good = resource(profile([sample(1)]))
    otlp = (1..200).map { |size| data(resource(profile([sample(1)]), "process.command": "x" * size)) }
    otlp << data << data + data(good, dictionary: nil)
    messages = Pitwall::Record::Messages::Pprof
    pprof = (1..200).map do |size|
      messages::Profile.new(string_table: ["", "x" * size, "count"], sample_type: [messages::ValueType.new(type: 1, unit: 2)],
                            sample: Array.new(size) { messages::Sample.new(value: [size]) }).to_proto
    end
    { "otlp" => otlp, "pprof" => pprof }.each do |format, files|
      Tempfile.create do |file|
        files.each_with_index do |bytes, number|
          File.binwrite(file.path, bytes)
          found = Import.format_of(file.path)
          assert_equal format, found, "#{number} of #{format}"
        end
      end
    end
  end

  def test_what_is_damaged_is_named
    strings = ->(*list) { dictionary(string_table: list) }
    good = resource(profile([sample(1)]))
    { "a stack's number is 3, not a number below 3" => data(resource(profile([sample(3)]))),
      "a stack's number is -1" => data(resource(profile([sample(-1)]))),
      "an attribute's number is 99" => data(resource(profile([sample(1, attributes: [99])]))),
      "a link's number is 2, not a number below 2" => data(resource(profile([sample(1, link: 2)]))),
      "a location's number is 4" => data(good, dictionary: dictionary(stack_table: [Otlp::Stack.new, Otlp::Stack.new(location_indices: [4])])),
      "a location's mapping is 7" => data(good, dictionary: dictionary(location_table: [Otlp::Location.new, Otlp::Location.new, Otlp::Location.new(mapping_index: 7)])),
      "a location's function is 8" => data(good, dictionary: dictionary(location_table: [Otlp::Location.new, Otlp::Location.new, Otlp::Location.new(lines: [line(8)])])),
      "a string's number is" => data(good, dictionary: strings.("", "samples")),
      "the first string is \"samples\", not empty" => data(good, dictionary: strings.("samples", "count")),
      "the first entry of function_table is not empty" => data(good, dictionary: dictionary(function_table: [function("main")])),
      "the first entry of stack_table is not empty" => data(good, dictionary: dictionary(stack_table: [Otlp::Stack.new(location_indices: [1])])),
      "the first entry of link_table is not empty" => data(good, dictionary: dictionary(link_table: [Otlp::Link.new(trace_id: "\1" * 16)])),
      "a sample has 2 values for 3 timestamps" => data(resource(profile([sample(1, [1, 2], times: [1, 2, 3])]))),
      "has a negative figure (-5)" => data(resource(profile([sample(1, [-5])]))),
      "has no figure that a recording holds: it has samples (days)" => data(resource(profile([sample(1)], %w[samples days]))) }.each do |message, bytes|
      assert_includes refused(bytes), message
    end
    assert_match(/: is damaged: its bytes are no message of OTLP\z/, refused(data(good)[0..-5], from: "otlp"))
    assert_match(/: is damaged: it has no dictionary\z/, refused("", from: "otlp"))
    assert_match(/a recording holds integers/, refused(data(resource(profile([sample(1, [(1 << 63) - 1, 1])])))))
  end

  # Whatever the bytes are, the import works or ends with one line.
  def test_random_damage
    whole = data(resource(profile([sample(1, [5]), sample(2, [3], link: 1)]), profile([sample(1, [70])], %w[cpu nanoseconds]), "process.pid": 42))
    random = Random.new(16)
    outcomes = Hash.new(0)
    1500.times do
      bytes = whole.dup
      random.rand(1..4).times { bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) }
      bytes = bytes.byteslice(0, random.rand(bytes.bytesize)) if random.rand(6).zero?
      begin
        RandomRecording.read(Imported.recording(bytes, from: "otlp"))
        outcomes[:read] += 1
      rescue Pitwall::BadRecording => error
        assert_equal 1, error.message.lines.size
        outcomes[:refused] += 1
      end
    end
    assert_operator outcomes[:read], :>, 100
    assert_operator outcomes[:refused], :>, 100
  end

  # 2 bytes of a file may become an object of 130.
  def test_a_bomb_is_refused_by_its_size
    bomb = Zlib.gzip("\x0A\x00".b * 3_000_000)
    assert_operator bomb.bytesize, :<, 20_000
    said = /: holds more than 1000000 bytes when decompressed of protobuf, which takes up to 65 times as much memory\z/
    %w[otlp pprof].each { |format| assert_match(said, refused(bomb, from: format, max_bytes: 1_000_000)) }
    assert_match(said, refused(bomb, max_bytes: 1_000_000))
  end

  # The usual limit of protobuf is below that of other formats, and read in time: the bytes are never decoded.
  def test_protobuf_has_a_limit_of_its_own
    limit = Imported::Import::MAX_PROTOBUF_BYTES
    assert_operator limit * 65, :<, 2.2 * (1 << 30)
    bomb = Zlib.gzip("\x0A\x00".b * (limit / 2 + 1))
    assert_match(/: holds more than #{limit} bytes when decompressed of protobuf/, refused(bomb))
    # Text of the same size is no protobuf, whatever its first byte.
    assert_match(/: is in none of the formats/, refused(Zlib.gzip("\n" * (limit + 2))))
    assert_match(/: is a program, not a profile/, refused("\x7FELF".b + "\x00" * (limit + 2)))
  end
end

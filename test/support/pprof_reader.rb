# frozen_string_literal: true

require "stringio"
require "zlib"

# Reads pprof's format by itself: a decoder of protobuf's wire format that knows nothing of ours, and what every reader demands.
module PprofReader
  # [[field number, Integer or bytes], …]
  def fields(bytes)
    found = []
    io = StringIO.new(bytes.b)
    until io.eof?
      key = varint(io)
      found << [key >> 3, case key & 7
                          when 0 then varint(io)
                          when 2 then io.read(varint(io))
                          else flunk("wire type #{key & 7}")
                          end]
    end
    found
  end

  def varint(io)
    value = shift = 0
    loop do
      byte = io.getbyte
      value |= (byte & 0x7f) << shift
      shift += 7
      return value if byte < 0x80
    end
  end

  def packed(bytes)
    io = StringIO.new(bytes.b)
    values = []
    values << varint(io) until io.eof?
    values
  end

  def all(fields, number) = fields.filter_map { |field, value| value if field == number }
  def one(fields, number) = all(fields, number).last || 0

  # {types:, samples: [{stack: [[name, file, start line, line], … from the root], labels: {}, values: {}}], …}
  def profile(segments, weight = nil, selection: Pitwall::Analyse::Selection.all)
    out = StringIO.new
    Pitwall::Show::Export::Pprof.new(segments, weight, selection: selection).write(out)
    take_apart(out.string)
  end

  # Of a file's content.
  def take_apart(file)
    top = fields(Zlib.gunzip(file))
    strings = all(top, 6).map { |text| text.dup.force_encoding("UTF-8") }
    assert_equal "", strings.first
    assert(strings.all?(&:valid_encoding?))
    functions = all(top, 5).to_h { |bytes| fields(bytes).then { |f| [one(f, 1), [strings[one(f, 2)], strings[one(f, 4)], one(f, 5)]] } }
    mappings = all(top, 3).map { |bytes| one(fields(bytes), 1) }
    locations = all(top, 4).to_h do |bytes|
      location = fields(bytes)
      assert_includes mappings, one(location, 2)
      line = fields(one(location, 4))
      [one(location, 1), [*functions.fetch(one(line, 1)), one(line, 2)]]
    end
    refute_includes functions.keys + locations.keys, 0
    assert_sequential mappings, functions.keys, locations.keys
    types = all(top, 1).map { |bytes| fields(bytes).then { |f| [strings[one(f, 1)], strings[one(f, 2)]] } }
    samples = all(top, 2).map { |bytes| sample(fields(bytes), types, locations, strings) }
    period = fields(one(top, 11)).then { |f| [strings[one(f, 1)], strings[one(f, 2)]] }
    { types: types, samples: samples, time: one(top, 9), duration: one(top, 10), period_type: period, period: one(top, 12), default: strings[one(top, 14)],
      strings: strings, comments: all(top, 13).flat_map { |bytes| packed(bytes) }.map { |at| strings[at] } }
  end

  # Parca takes a table's ids for places in it, from 1 on.
  def assert_sequential(*tables) = tables.each { |ids| assert_equal (1..ids.size).to_a, ids }

  def sample(fields, types, locations, strings)
    values = all(fields, 2).flat_map { |bytes| packed(bytes) }
    assert_equal types.size, values.size
    labels = all(fields, 3).to_h { |bytes| fields(bytes).then { |f| [strings[one(f, 1)], one(f, 2).zero? ? one(f, 3) : strings[one(f, 2)]] } }
    { stack: all(fields, 1).flat_map { |bytes| packed(bytes) }.map { |id| locations.fetch(id) }.reverse, labels: labels, values: types.map(&:first).zip(values).to_h }
  end
end

# frozen_string_literal: true

require "stringio"
require "zlib"

# Reads pprof's format without Pitwall's code: a decoder of protobuf's wire format, with the checks that every reader of
# pprof makes.
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

  # {types:, samples: [{stack: [[name, file, start line, line], … from the root], labels: {}, values: {}}], …}.
  # objects: name → [file, build id, address]
  def profile(segments, weight = nil, selection: Pitwall::Analyse::Selection.all)
    out = StringIO.new
    Pitwall::Show::Export::Pprof.new(segments, weight, selection: selection).write(out)
    take_apart(out.string)
  end

  # Reads the content of a file.
  def take_apart(file)
    top = fields(Zlib.gunzip(file))
    strings = all(top, 6).map { |text| text.dup.force_encoding("UTF-8") }
    assert_equal "", strings.first
    assert(strings.all?(&:valid_encoding?))
    functions = all(top, 5).to_h do |bytes|
      function = fields(bytes)
      [one(function, 1), [strings[one(function, 2)], strings[one(function, 4)], one(function, 5)]]
    end
    mappings = all(top, 3).to_h do |bytes|
      mapping = fields(bytes)
      [one(mapping, 1), [strings[one(mapping, 5)], strings[one(mapping, 6)]]]
    end
    objects = {}
    locations = all(top, 4).to_h do |bytes|
      location = fields(bytes)
      mapping = mappings.fetch(one(location, 2))
      line = fields(one(location, 4))
      place = [*functions.fetch(one(line, 1)), one(line, 2)]
      objects[place.first] = [*mapping, one(location, 3)]
      [one(location, 1), place]
    end
    refute_includes functions.keys + locations.keys, 0
    assert_sequential mappings.keys, functions.keys, locations.keys
    types = all(top, 1).map { |bytes| fields(bytes).then { |f| [strings[one(f, 1)], strings[one(f, 2)]] } }
    samples = all(top, 2).map { |bytes| sample(fields(bytes), types, locations, strings) }
    period = fields(one(top, 11)).then { |f| [strings[one(f, 1)], strings[one(f, 2)]] }
    { types: types, samples: samples, time: one(top, 9), duration: one(top, 10),
      period_type: period, period: one(top, 12), default: strings[one(top, 14)],
      strings: strings, objects: objects, comments: all(top, 13).flat_map { |bytes| packed(bytes) }.map { |at| strings[at] } }
  end

  # Parca uses the ids of a table as positions in the table, counted from 1.
  def assert_sequential(*tables) = tables.each { |ids| assert_equal (1..ids.size).to_a, ids }

  def sample(fields, types, locations, strings)
    values = all(fields, 2).flat_map { |bytes| packed(bytes) }
    assert_equal types.size, values.size
    labels = all(fields, 3).to_h do |bytes|
      label = fields(bytes)
      [strings[one(label, 1)], one(label, 2).zero? ? one(label, 3) : strings[one(label, 2)]]
    end
    stack = all(fields, 1).flat_map { |bytes| packed(bytes) }.map { |id| locations.fetch(id) }.reverse
    { stack: stack, labels: labels, values: types.map(&:first).zip(values).to_h }
  end
end

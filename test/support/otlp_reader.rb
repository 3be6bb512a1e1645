# frozen_string_literal: true

require "open3"
require_relative "../../script/checkout"

# Reads OTLP profiles by protoc and the official definition, without the gem that Pitwall writes them with. The rules of
# the definition are checked on the way.
module OtlpReader
  FOLDER = File.join(Checkout::ROOT, "script/proto/opentelemetry")
  FILE = "opentelemetry/proto/profiles/v1development/profiles.proto"
  TABLES = %w[mapping_table location_table function_table link_table string_table attribute_table stack_table].freeze

  def self.protoc? = ENV["PATH"].split(":").any? { |dir| File.executable?(File.join(dir, "protoc")) }

  # protoc's text as nested Hashes: field → list of values.
  #: (String) -> Hash
  def decoded(bytes)
    skip "peer absent: protoc (apt-get install protobuf-compiler)" unless OtlpReader.protoc?

    text, error, status = Open3.capture3("protoc", "--decode", "opentelemetry.proto.profiles.v1development.ProfilesData", FILE,
                                         stdin_data: bytes, binmode: true, chdir: FOLDER)
    assert status.success?, error
    parsed(text.lines(chomp: true).each)
  end

  def parsed(lines)
    fields = Hash.new { |all, name| all[name] = [] }
    loop do
      line = lines.next.strip
      return fields if line == "}"

      if line.end_with?(" {") then fields[line.delete_suffix(" {")] << parsed(lines)
      else fields[line[/\A\w+/]] << scalar(line[/: (.*)\z/m, 1])
      end
    end
    fields
  end

  def scalar(text)
    return text.to_i if text.match?(/\A-?\d+\z/)

    text[1..-2].gsub(/\\(?:([0-7]{3})|(.))/) { $1 ? $1.to_i(8).chr : { "n" => "\n", "t" => "\t", "r" => "\r" }.fetch($2, $2) }
               .b.force_encoding(Encoding::UTF_8)
  end

  # {resources: [{attributes:, scope:, profiles: [{type:, period_type:, period:, time:, duration:, comments:, samples:
  # [{stack: [{name:, file:, start:, line:, mapping:, build_id:, address:, type:}, … from the root], attributes:, link:, value:}]}]}]}
  def otlp(bytes)
    data = decoded(bytes)
    dictionary = data["dictionary"].each_with_object(Hash.new { |all, name| all[name] = [] }) { |part, all| TABLES.each { |name| all[name].concat(part[name]) } }
    assert_tables(dictionary)
    @used = Hash.new { |all, table| all[table] = {} }
    resources = data["resource_profiles"].map { |resource| resource(resource, dictionary) }
    assert_all_used(dictionary)
    { resources: resources }
  end

  # Entry 0 of each table is empty, and no entry is there twice.
  def assert_tables(dictionary)
    TABLES.each do |name|
      first, = dictionary[name]
      assert_equal name == "string_table" ? "" : true, name == "string_table" ? first : zero?(first), name
      assert_equal dictionary[name].uniq, dictionary[name], name
    end
  end

  def zero?(entry) = entry.values.flatten.all? { |value| value.is_a?(String) && value.delete("\0").empty? }

  # No entry is there that nothing refers to.
  def assert_all_used(dictionary)
    TABLES.each { |name| assert_equal((1...dictionary[name].size).to_a, @used[name].keys.sort, name) }
  end

  def entry(dictionary, table, number)
    @used[table][number] = true unless number.zero?
    dictionary[table].fetch(number)
  end

  def string(dictionary, number) = entry(dictionary, "string_table", number || 0)

  def resource(resource, dictionary)
    attributes = resource["resource"].first["attributes"].to_h { |pair| [pair["key"].first, any(pair["value"].first)] }
    assert_equal 1, resource["scope_profiles"].size
    scope = resource["scope_profiles"].first
    { attributes: attributes, scope: scope["scope"].first.values_at("name", "version").map(&:first), schema: [resource, scope].map { |one| one["schema_url"].first },
      profiles: scope["profiles"].map { |profile| profile(profile, dictionary) } }
  end

  def profile(profile, dictionary)
    samples = profile["samples"].map { |sample| sample(sample, dictionary) }
    identities = profile["samples"].map { |sample| sample.values_at("stack_index", "attribute_indices", "link_index") }
    assert_equal identities.uniq, identities, "samples of one identity are one"
    { type: type(profile["sample_type"].first, dictionary), period_type: type(profile["period_type"].first, dictionary), period: profile["period"].first,
      time: profile["time_unix_nano"].first, duration: profile["duration_nano"].first, samples: samples,
      comments: attributes(profile, dictionary).fetch("pprof.profile.comment") }
  end

  def type(type, dictionary) = %w[type_strindex unit_strindex].map { |field| string(dictionary, type[field].first) }

  def sample(sample, dictionary)
    assert_equal 1, sample["values"].size
    link = sample["link_index"].first
    stack = entry(dictionary, "stack_table", sample["stack_index"].first)
    { stack: stack["location_indices"].map { |number| frame_of(entry(dictionary, "location_table", number), dictionary) }.reverse,
      attributes: attributes(sample, dictionary), value: sample["values"].first,
      link: link && entry(dictionary, "link_table", link).values_at("trace_id", "span_id").map { |id| id.first.unpack1("H*") } }
  end

  def frame_of(location, dictionary)
    assert_operator location["lines"].size, :<=, 1
    line = location["lines"].first
    function = line && entry(dictionary, "function_table", line["function_index"].first)
    mapping = location["mapping_index"].first&.then { |number| entry(dictionary, "mapping_table", number) }
    { name: function && string(dictionary, function["name_strindex"].first), file: function && string(dictionary, function["filename_strindex"].first),
      start: function && function["start_line"].first.to_i, line: line && line["line"].first.to_i, address: location["address"].first,
      mapping: mapping && string(dictionary, mapping["filename_strindex"].first),
      build_id: mapping && attributes(mapping, dictionary)["process.executable.build_id.gnu"], type: attributes(location, dictionary)["profile.frame.type"] }
  end

  def attributes(entry, dictionary)
    pairs = entry["attribute_indices"].map do |number|
      attribute = entry(dictionary, "attribute_table", number)
      [string(dictionary, attribute["key_strindex"].first), any(attribute["value"].first)]
    end
    assert_equal pairs.map(&:first).uniq, pairs.map(&:first), "a name is there once"
    pairs.to_h
  end

  def any(value)
    name, values = value.first
    name == "array_value" ? values.first["values"].map { |one| any(one) } : values.first
  end
end

# frozen_string_literal: true

# The bytes of a file of a time zone (RFC 8536), and what a program needs to read it with tzinfo.
module ZoneFile
  LIBS = %w[tzinfo concurrent-ruby].flat_map { |name| Gem::Specification.find_by_name(name).full_require_paths }.freeze
  # Ruby code for a program that has required tzinfo. Its value is the object with which tzinfo reads such files.
  READER = <<~RUBY
    deduper = TZInfo.const_get(:ConcurrentStringDeduper).new
    sources = TZInfo::DataSources
    READER = sources.const_get(:ZoneinfoReader).new(sources.const_get(:PosixTimeZoneParser).new(deduper), deduper)
  RUBY

  module_function

  # @param types [Array] of [seconds from UTC, daylight saving time?, abbreviation]
  # @param changes [Array] of [time, index in `types` of the type that begins then]
  # @param rule [String, nil] says when the clock changes later than in `changes`, as the environment variable TZ does
  #   ("CET-1CEST,M3.5.0,M10.5.0/3"). nil: the file has no rule. Its version is 1, and its times have 32 bits.
  #: (Array, Array, String?) -> String
  def bytes(types, changes, rule)
    return block("\0", 32, types, changes) if rule.nil?

    "#{block("2", 32, types, changes)}#{block("2", 64, types, changes)}\n#{rule}\n"
  end

  def block(version, bits, types, changes)
    names = types.map(&:last).uniq
    starts = names.each_index.map { |i| names.take(i).sum { |name| name.bytesize + 1 } }
    counts = [0, 0, 0, changes.size, types.size, names.sum { |name| name.bytesize + 1 }]
    times = changes.map(&:first).pack(bits == 64 ? "q>*" : "l>*")
    kinds = types.map { |seconds, dst, name| [seconds, dst ? 1 : 0, starts[names.index(name)]].pack("l>CC") }
    ["TZif", version, "\0" * 15, counts.pack("N6"), times, changes.map(&:last).pack("C*"), *kinds,
     *names.map { |name| "#{name}\0" }].map(&:b).join
  end
end

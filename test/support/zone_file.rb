# frozen_string_literal: true

# The bytes of a file of a time zone, as RFC 8536 has it.
module ZoneFile
  module_function

  # @param types [Array] of [seconds from UTC, daylight saving time?, abbreviation]
  # @param changes [Array] of [time, number of the type from then on]
  # @param rule [String, nil] the times after the last change; nil: the first version of the format, with 32 bits
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

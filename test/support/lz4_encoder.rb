# frozen_string_literal: true

# LZ4 blocks for tests: greedy, with a hash of four bytes → last place. Slow and obvious.
module LZ4Encoder
  # The format wants the last five bytes as literals and no match to start in the last twelve.
  TAIL = 12

  def self.encode(raw)
    out = "".b
    seen = {}
    anchor = at = 0
    while at < raw.bytesize - TAIL
      key = raw.byteslice(at, 4)
      from = seen[key]
      seen[key] = at
      if from && at - from <= 0xffff
        length = 4
        length += 1 while at + length < raw.bytesize - 5 && raw.getbyte(from + length) == raw.getbyte(at + length)
        out << sequence(raw.byteslice(anchor, at - anchor), at - from, length)
        anchor = at += length
      else
        at += 1
      end
    end
    out << sequence(raw.byteslice(anchor..), nil, 4)
  end

  def self.sequence(literals, offset, match)
    token = [literals.bytesize, 15].min << 4 | [match - 4, 15].min
    bytes = [token].pack("C") << more(literals.bytesize) << literals
    bytes << [offset].pack("v") << more(match - 4) if offset
    bytes
  end

  def self.more(count)
    return "".b if count < 15

    count -= 15
    "\xff".b * (count / 255) << [count % 255].pack("C")
  end
end

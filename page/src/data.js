// The other end of lib/pitwall/show/page/data.rb: Base64 of zlib of a length, a JSON object, columns of BER ints.

export async function unpack(base64) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old to open the report: it needs one of 2023 or newer.")
  const stream = new Blob([fromBase64(base64)]).stream().pipeThrough(new DecompressionStream("deflate"))
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
  const length = new DataView(bytes.buffer).getUint32(0, true)
  return new Data(JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))), bytes.subarray(4 + length))
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text)
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

export class Data {
  constructor(object, columns) {
    this.object = object
    this.columns = columns
  }

  // The numbers of a column, e.g. [0, 12] → Int32Array. Kind is the array's class; a Float64Array holds all integers up
  // to 2^53.
  column([from, length], Kind = Float64Array) {
    const bytes = this.columns
    const to = from + length
    let rows = 0
    for (let at = from; at < to; at++) if (bytes[at] < 128) rows++
    const values = new Kind(rows)
    let value = 0
    let row = 0
    for (let at = from; at < to; at++) {
      const byte = bytes[at]
      if (byte < 128) {
        values[row++] = value * 128 + byte
        value = 0
      } else value = value * 128 + (byte & 127)
    }
    return values
  }

  // Pairs (value, rows) → one value a row.
  runs(place, rows, Kind) {
    const pairs = this.column(place)
    const values = new Kind(rows)
    let at = 0
    for (let pair = 0; pair < pairs.length; pair += 2) {
      values.fill(pairs[pair], at, at + pairs[pair + 1])
      at += pairs[pair + 1]
    }
    return values
  }
}

# frozen_string_literal: true

require "json"
require "pitwall/record"
require "tmpdir"
require "zlib"

# What is in a page, taken apart without a browser.
module PageContents
  # All of its data: the object's size, the object as JSON, then columns.
  #: (String) -> String
  def page_data(html) = Zlib.inflate(html[%r{id="data">([A-Za-z0-9+/=]+)</script>}, 1].unpack1("m0"))

  #: (String) -> String
  def page_json(html)
    data = page_data(html)
    data.byteslice(4, data.unpack1("V"))
  end

  # The object, and a function that reads a column.
  def unpack(html)
    data = page_data(html)
    size = data.unpack1("V")
    columns = data.byteslice(4 + size..)
    [JSON.parse(data.byteslice(4, size)), ->((from, bytes)) { columns.byteslice(from, bytes).unpack("w*") }]
  end

  # @yield [segments, path] of a recording in a file of its own
  def with_segments(bytes)
    Dir.mktmpdir do |dir|
      File.binwrite(path = File.join(dir, "a.pit"), bytes)
      yield Pitwall::Record.read(path).segments, path
    end
  end
end
